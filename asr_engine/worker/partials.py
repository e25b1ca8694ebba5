"""Partials wait here for their turn: at most five a second per session, only the newest."""

from __future__ import annotations

from dataclasses import dataclass

from asr_engine.events import Partial

PARTIAL_INTERVAL_S = 0.2


@dataclass(slots=True)
class _Place:
    waiting: Partial | None = None
    sent_at_s: float = float("-inf")


class PartialBoard:
    """One place per stream that spoke lately; a stream that ends in any way leaves none."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}

    def put(self, partial: Partial) -> None:
        """Replaces what waits for the same stream."""
        self._places.setdefault(partial.stream, _Place()).waiting = partial

    def withdraw(self, stream: str) -> None:
        """The utterance is closed, or the stream is: what waits is out of date."""
        if place := self._places.get(stream):
            place.waiting = None

    def take_due(self, now: float) -> list[Partial]:
        """Partials whose stream has been quiet for PARTIAL_INTERVAL_S."""
        due = []
        for stream, place in list(self._places.items()):
            if now - place.sent_at_s < PARTIAL_INTERVAL_S:
                continue
            if place.waiting is None:
                del self._places[stream]
            else:
                due.append(place.waiting)
                place.waiting, place.sent_at_s = None, now
        return due
