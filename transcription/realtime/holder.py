"""Which socket captures a session: a lease in the broker, taken over by rule.

The same capture id takes over at once (a page that reconnects); another one is refused while the
lease lives, unless it takes over by an explicit act.
"""

from __future__ import annotations

import secrets
from typing import Final

from redis.asyncio import Redis

from asr_engine.protocol import CAPTURE_TTL_S, capture_key
from transcription.errors import InUseError

_TAKE: Final = """
local holder = redis.call('HGET', KEYS[1], 'capture_id')
if holder and holder ~= ARGV[1] and ARGV[3] ~= '1' then return 0 end
redis.call('HSET', KEYS[1], 'capture_id', ARGV[1], 'connection', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[4])
return 1
"""
_RENEW: Final = """
local holder = redis.call('HGET', KEYS[1], 'connection')
if holder and holder ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'capture_id', ARGV[2], 'connection', ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
"""
_RELEASE: Final = """
if redis.call('HGET', KEYS[1], 'connection') ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
return 1
"""


class CaptureHolder:
    """One socket's claim to be the one that captures."""

    def __init__(self, broker: Redis, session: str, capture_id: str) -> None:
        self._broker = broker
        self._key = capture_key(session)
        self._capture_id = capture_id
        self.connection = secrets.token_hex(8)

    async def take(self, *, is_taking_over: bool) -> None:
        """Raises InUseError, RedisError."""
        answer = await self._broker.eval(
            _TAKE,
            1,
            self._key,
            self._capture_id,
            self.connection,
            "1" if is_taking_over else "0",
            str(CAPTURE_TTL_S),
        )
        if not answer:
            raise InUseError

    async def renew(self) -> None:
        """Raises InUseError when another socket has taken over, RedisError."""
        answer = await self._broker.eval(
            _RENEW, 1, self._key, self.connection, self._capture_id, str(CAPTURE_TTL_S)
        )
        if not answer:
            raise InUseError

    async def release(self) -> bool:
        """Whether it was ours; harmless when another socket holds it. Raises RedisError."""
        return bool(await self._broker.eval(_RELEASE, 1, self._key, self.connection))
