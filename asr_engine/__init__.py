"""Speech recognition engine: streaming and batch, without Django, Celery or Channels."""
