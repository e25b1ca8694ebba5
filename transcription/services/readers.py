"""How many read a live session: the places that readers' sockets hold in the broker.

A place is taken when a socket begins to read and given back at its end; those of a process that
died run out (`transcription.feeds.places`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import redis
from django.conf import settings


def readers_key(session: str) -> str:
    """Broker: who reads, by when their place runs out (milliseconds)."""
    return f"places:viewers:{session}"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def count_readers(sessions: Sequence[str]) -> list[int]:
    """Readers of each of `sessions`; 0 for all where the broker is away."""
    if not sessions:
        return []
    try:
        with (
            redis.Redis.from_url(settings.SITE.broker_url, socket_timeout=2) as broker,
            broker.pipeline(transaction=False) as pipeline,
        ):
            for session in sessions:
                pipeline.zcount(readers_key(session), now_ms(), "+inf")
            return [int(count) for count in pipeline.execute()]
    except redis.RedisError:
        return [0] * len(sessions)
