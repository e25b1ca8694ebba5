"""Long work that drives the engine's batch and streaming parts."""
