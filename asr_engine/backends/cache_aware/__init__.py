"""Cache-aware streaming recognition: each frame is encoded once, caches carry the past."""
