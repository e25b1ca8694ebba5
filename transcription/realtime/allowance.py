"""How fast one socket may send: token buckets, of audio in seconds, and of messages."""

from __future__ import annotations

from typing import Final

from asr_engine.audio import SAMPLE_RATE

BURST_S: Final = 120.0
"""Audio that may come at once: what a page kept during a network drop."""
RATE: Final = 8.0
"""Seconds of audio a second, for as long as it takes to catch up."""
PACKET_COST_S: Final = 0.02
"""A packet or a mark counts at least this much, so that tiny ones are bounded too."""
MESSAGE_BURST: Final = 40.0
"""Messages that may come at once."""
MESSAGE_RATE: Final = 4.0
"""Messages a second: each may cost a look into the database."""


class Bucket:
    """`now_s` of every call is monotonic seconds."""

    def __init__(self, now_s: float, *, size: float, rate: float) -> None:
        self._size = size
        self._rate = rate
        self._left = size
        self._at_s = now_s

    def take(self, cost: float, now_s: float) -> bool:
        """Whether so much may come now; if so, it is gone from the bucket."""
        self._left = min(self._size, self._left + (now_s - self._at_s) * self._rate)
        self._at_s = now_s
        if cost > self._left:
            return False
        self._left -= cost
        return True


class Allowance:
    """Of audio. `now_s` of every call is monotonic seconds."""

    def __init__(self, now_s: float) -> None:
        self._bucket = Bucket(now_s, size=BURST_S, rate=RATE)

    def spend(self, samples: int, now_s: float) -> bool:
        """Whether a packet of `samples` (0 for a mark) may come now."""
        return self._bucket.take(max(samples / SAMPLE_RATE, PACKET_COST_S), now_s)


def message_bucket(now_s: float) -> Bucket:
    return Bucket(now_s, size=MESSAGE_BURST, rate=MESSAGE_RATE)
