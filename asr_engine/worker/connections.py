"""Connections to the two servers, and patience with them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

SOCKET_TIMEOUT_S = 30
"""Longer than any blocking read here: redis-py's own 5 s would break them."""
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0

T = TypeVar("T")
log = structlog.get_logger(__name__)


def connect(url: str) -> Redis:
    return Redis.from_url(url, socket_timeout=SOCKET_TIMEOUT_S, socket_connect_timeout=5)


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """One entry of a Redis stream."""

    entry_id: str
    fields: dict[bytes, bytes]


async def read_streams(
    client: Redis, after: dict[str, str], *, count: int, block_ms: int | None = None
) -> dict[str, list[StreamEntry]]:
    """Entries that follow the id given for each stream; streams without any are left out."""
    places: Any = after
    answer: Any = await client.xread(places, count=count, block=block_ms)
    return {
        key.decode(): [StreamEntry(entry_id.decode(), fields) for entry_id, fields in entries]
        for key, entries in answer
    }


async def keep_trying(server: str, call: Callable[[], Awaitable[T]]) -> T:
    """The result of `call`, tried again with growing pauses for as long as `server` is away.

    `call` must bear being run twice: an answer may be lost after the work was done.
    """
    pause_s = FIRST_PAUSE_S
    is_lost = False
    while True:
        try:
            result = await call()
        except (RedisError, OSError) as error:
            if not is_lost:
                log.warning("server_lost", server=server, error=type(error).__name__)
            is_lost = True
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        else:
            if is_lost:
                log.info("server_found", server=server)
            return result
