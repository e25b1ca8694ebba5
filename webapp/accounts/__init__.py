"""People and their tokens."""
