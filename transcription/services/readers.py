"""How many read a live session: about, since each web process tells only every few seconds.

A process writes how many sockets of each session it holds (`transcription.realtime.readers`); what
a dead one said runs out by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import redis
from django.conf import settings

READERS_KEY: Final = "readers"
"""Broker: a set of the processes that have ever told (pruned by readers)."""
BEAT_S: Final = 5
BEAT_TTL_S: Final = 15
MAX_PROCESSES: Final = 64
"""Of which the counts are added up."""


def readers_key(process: str) -> str:
    """Broker: a hash of sockets by session, which expires after BEAT_TTL_S without a beat."""
    return f"readers:{process}"


def count_readers(sessions: Sequence[str]) -> list[int]:
    """Readers of each of `sessions`; 0 for all where the broker is away."""
    if not sessions:
        return []
    try:
        with redis.Redis.from_url(settings.SITE.broker_url, socket_timeout=2) as broker:
            processes: Any = broker.srandmember(READERS_KEY, MAX_PROCESSES)
            with broker.pipeline(transaction=False) as pipeline:
                for process in processes:
                    pipeline.hmget(readers_key(process.decode()), list(sessions))
                told = pipeline.execute()
    except redis.RedisError:
        return [0] * len(sessions)
    return add_up(len(sessions), told)


def add_up(sessions: int, told: Sequence[Sequence[bytes | None]]) -> list[int]:
    """`told` has a row for each process, with a count (or None) for each session."""
    return [sum(int(counts[place] or 0) for counts in told) for place in range(sessions)]
