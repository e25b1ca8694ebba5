"""How many captures and readers there may be at once, counted in the broker across web processes.

    places:{what}    sorted set    {who: when their place runs out, by the broker's clock in ms}

A place is taken exactly (fifty who come at once to twenty places are twenty), kept alive by its
process for all its sockets together, and given back at the end; those of a process that died run
out. Who comes back under the same name has the place still.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Final

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from asr_engine.asyncio_tasks import end_tasks
from transcription.errors import TryLaterError

log = structlog.get_logger(__name__)

PLACE_TTL_MS: Final = 15_000
KEEP_EVERY_S: Final = 4.0
MEMBERS_PER_CALL: Final = 1000

_TAKE: Final = """
-- KEYS: sets. ARGV: member, life in ms, limit of each set. 0, or which of the sets is full.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for index, key in ipairs(KEYS) do
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  if not redis.call('ZSCORE', key, ARGV[1])
     and redis.call('ZCARD', key) >= tonumber(ARGV[index + 2]) then return index end
end
for _, key in ipairs(KEYS) do
  redis.call('ZADD', key, now + ARGV[2], ARGV[1])
  redis.call('PEXPIRE', key, ARGV[2])
end
return 0
"""
_KEEP: Final = """
-- KEYS: one set. ARGV: life in ms, members.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for index = 2, #ARGV do redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[index]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
"""


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `most` at once of `what`; `error` says so to the one who comes too late."""

    what: str
    most: int
    error: TryLaterError

    @property
    def key(self) -> str:
        return f"places:{self.what}"


class Places:
    """Belongs to one event loop: what its sockets hold."""

    def __init__(self, broker: Redis) -> None:
        self._broker = broker
        # Counted: the socket that takes a session over may live here beside the one before it.
        self._held: dict[str, Counter[str]] = {}
        self._task: asyncio.Task[None] | None = None

    async def take(self, who: str, *limits: Limit) -> None:
        """A place under every limit, or none. Raises the error of the limit that is reached, and
        RedisError."""
        keys = [limit.key for limit in limits]
        bounds = [str(limit.most) for limit in limits]
        full = int(
            await self._broker.eval(_TAKE, len(keys), *keys, who, str(PLACE_TTL_MS), *bounds)
        )
        if full:
            raise limits[full - 1].error
        for key in keys:
            self._held.setdefault(key, Counter())[who] += 1
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._keep())

    async def give_back(self, who: str, *limits: Limit) -> None:
        """Harmless for a place that is not held. Raises RedisError."""
        self.forget(who, *limits)
        for limit in limits:
            await self._broker.zrem(limit.key, who)

    def forget(self, who: str, *limits: Limit) -> None:
        """Another socket holds it now."""
        for limit in limits:
            held = self._held.get(limit.key, Counter())
            held[who] -= 1
            if held[who] <= 0:
                del held[who]
            if not held:
                self._held.pop(limit.key, None)

    async def close(self) -> None:
        if self._task is not None:
            await end_tasks([self._task])
            self._task = None

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(KEEP_EVERY_S)
            try:
                await self.keep()
            except (RedisError, OSError) as error:
                log.warning("places_not_kept", error=type(error).__name__)

    async def keep(self) -> None:
        """Prolong everything held, in one round trip. Raises RedisError."""
        async with self._broker.pipeline(transaction=False) as pipeline:
            for key, held in self._held.items():
                members = list(held)
                for start in range(0, len(members), MEMBERS_PER_CALL):
                    some = members[start : start + MEMBERS_PER_CALL]
                    pipeline.eval(_KEEP, 1, key, str(PLACE_TTL_MS), *some)
            await pipeline.execute()
