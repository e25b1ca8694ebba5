"""Tells the broker how many sockets of each live session this event loop holds."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections import Counter
from typing import Any, Final

from redis.asyncio import Redis
from redis.exceptions import RedisError

from asr_engine.asyncio_tasks import end_tasks
from transcription.services.readers import (
    BEAT_S,
    BEAT_TTL_S,
    MAX_PROCESSES,
    READERS_KEY,
    add_up,
    readers_key,
)

SETTLE_S: Final = 1.0
"""Between two messages, however many readers come and go."""


class Readers:
    """Belongs to one event loop. Its counts are about right: they travel every BEAT_S."""

    def __init__(self, broker: Redis) -> None:
        self._broker = broker
        self._process = secrets.token_hex(8)
        self._counts: Counter[str] = Counter()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def enter(self, session: str) -> None:
        self._counts[session] += 1
        self._changed.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def leave(self, session: str) -> None:
        """Once for each `enter`."""
        self._counts[session] -= 1
        if self._counts[session] <= 0:
            del self._counts[session]
        self._changed.set()

    async def count(self, session: str) -> int:
        """Of all processes. Raises RedisError."""
        processes: Any = await self._broker.srandmember(READERS_KEY, MAX_PROCESSES)
        names = [process.decode() for process in processes]
        async with self._broker.pipeline(transaction=False) as pipeline:
            for name in names:
                pipeline.hmget(readers_key(name), [session])
                pipeline.exists(readers_key(name))
            answers = await pipeline.execute()
        told, lives = answers[::2], answers[1::2]
        if dead := [name for name, alive in zip(names, lives, strict=True) if not alive]:
            await self._broker.srem(READERS_KEY, *dead)
        return add_up(1, told)[0]

    async def close(self) -> None:
        if self._task is not None:
            await end_tasks([self._task])
            self._task = None
        async with self._broker.pipeline(transaction=False) as pipeline:
            pipeline.delete(readers_key(self._process))
            pipeline.srem(READERS_KEY, self._process)
            await pipeline.execute()

    async def _run(self) -> None:
        """At once when the first reader comes, soon when others come and go, else every BEAT_S."""
        while True:
            self._changed.clear()
            with contextlib.suppress(RedisError, OSError):  # the next beat says it again
                await self._tell()
            await asyncio.sleep(SETTLE_S)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), BEAT_S - SETTLE_S)

    async def _tell(self) -> None:
        key = readers_key(self._process)
        async with self._broker.pipeline(transaction=True) as pipeline:
            pipeline.delete(key)
            if self._counts:
                pipeline.hset(
                    key, mapping={name: str(count) for name, count in self._counts.items()}
                )
                pipeline.expire(key, BEAT_TTL_S)
                pipeline.sadd(READERS_KEY, self._process)
            await pipeline.execute()
