"""Batch work gives way to live streams on the same machine.

The process is niced (see `transcription.tasks`), which is not enough where memory bandwidth or a
GPU is shared: so it also waits between windows while an engine says that it lags.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import redis
from django.conf import settings

from asr_engine.client import engine_statuses_sync

LAG_LIMIT_MS: Final = 300
"""Lag of a live stream above which batch work waits."""
LOOK_EVERY_S: Final = 0.5
LONGEST_WAIT_S: Final = 30.0
"""After this wait one window is done all the same: an engine that always lags must not stop all."""


class LivePace:
    """Asked between windows; looks at the engines at most twice a second."""

    def __init__(self) -> None:
        self._broker = redis.Redis.from_url(settings.SITE.broker_url, socket_timeout=30)
        self._looked_at = 0.0

    def is_live_late(self) -> bool:
        """Whether a live stream lags now."""
        return self._lag_ms() > LAG_LIMIT_MS

    def wait_for_live(self, *, stop: Callable[[], bool]) -> bool:
        """Return when no live stream lags; True if `stop` said so meanwhile."""
        if time.monotonic() - self._looked_at < LOOK_EVERY_S:
            return False
        give_up_at = time.monotonic() + LONGEST_WAIT_S
        while self.is_live_late() and time.monotonic() < give_up_at:
            if stop():
                return True
            time.sleep(LOOK_EVERY_S)
        self._looked_at = time.monotonic()
        return False

    def _lag_ms(self) -> int:
        try:
            statuses = engine_statuses_sync(self._broker)
        except redis.RedisError:  # the broker restarts: nobody to give way to that we know of
            return 0
        return max((status.lag_ms for status in statuses), default=0)
