"""Partials wait here for their turn: at most five a second per session, only the newest."""

from __future__ import annotations

from dataclasses import dataclass

from asr_engine.events import Partial

PARTIAL_INTERVAL_S = 0.2
EARLY_S = 0.03
"""A partial may come so much before its turn, which then counts from when it should have come:
packets come every 200 ms too, give or take, and each would else wait for the slowest before it."""


@dataclass(slots=True)
class _Place:
    waiting: Partial | None = None
    turn_at_s: float = float("-inf")


class PartialBoard:
    """One place per stream that spoke lately; a stream that ends in any way leaves none."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}

    @property
    def is_empty(self) -> bool:
        return not self._places

    def put(self, partial: Partial) -> None:
        """Replaces what waits for the same stream."""
        self._places.setdefault(partial.stream, _Place()).waiting = partial

    def withdraw(self, stream: str) -> None:
        """The utterance is closed, or the stream is: what waits is out of date."""
        if place := self._places.get(stream):
            place.waiting = None

    def take_due(self, now: float) -> list[Partial]:
        """Partials whose stream has been quiet for PARTIAL_INTERVAL_S, on the average."""
        due = []
        for stream, place in list(self._places.items()):
            if place.waiting is None:
                if now >= place.turn_at_s:
                    del self._places[stream]
            elif now >= place.turn_at_s - EARLY_S:
                due.append(place.waiting)
                place.waiting = None
                place.turn_at_s = max(place.turn_at_s, now - EARLY_S) + PARTIAL_INTERVAL_S
        return due
