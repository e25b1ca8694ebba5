"""One recorder works, another stands by: a lease in the broker."""

from __future__ import annotations

import os
import secrets
import socket

from redis import Redis

from asr_engine.protocol import RECORDER_LEADER_KEY, RECORDER_TTL_S

_HOLD = """
local leader = redis.call('GET', KEYS[1])
if leader and leader ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
_YIELD = """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
"""


class Leadership:
    """Held for RECORDER_TTL_S at a time.

    A recorder that was stopped in the middle of a step and wakes up deposed does no harm: finals
    and marks are stored once, and audio is written where the other one wrote the same.
    """

    def __init__(self, broker: Redis) -> None:
        self._broker = broker
        self.name = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"

    def hold(self) -> bool:
        """Take or renew the lease; False while another recorder leads. Raises RedisError."""
        ttl_ms = str(RECORDER_TTL_S * 1000)
        return bool(self._broker.eval(_HOLD, 1, RECORDER_LEADER_KEY, self.name, ttl_ms))

    def give_up(self) -> None:
        """Let a standby take over at once. Raises RedisError."""
        self._broker.eval(_YIELD, 1, RECORDER_LEADER_KEY, self.name)
