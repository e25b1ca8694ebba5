"""How fast one socket may send audio: a token bucket counted in seconds of audio."""

from __future__ import annotations

from typing import Final

from asr_engine.audio import SAMPLE_RATE

BURST_S: Final = 120.0
"""Audio that may come at once: what a page kept during a network drop."""
RATE: Final = 8.0
"""Seconds of audio a second, for as long as it takes to catch up."""
PACKET_COST_S: Final = 0.02
"""A packet or a mark counts at least this much, so that tiny ones are bounded too."""


class Allowance:
    """`now_s` of every call is monotonic seconds."""

    def __init__(self, now_s: float) -> None:
        self._left_s = BURST_S
        self._at_s = now_s

    def spend(self, samples: int, now_s: float) -> bool:
        """Whether a packet of `samples` (0 for a mark) may come now."""
        self._left_s = min(BURST_S, self._left_s + (now_s - self._at_s) * RATE)
        self._at_s = now_s
        cost_s = max(samples / SAMPLE_RATE, PACKET_COST_S)
        if cost_s > self._left_s:
            return False
        self._left_s -= cost_s
        return True
