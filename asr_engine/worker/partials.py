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
    """One place per stream."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}

    def put(self, partial: Partial) -> None:
        """Replaces what waits for the same stream."""
        self._places.setdefault(partial.stream, _Place()).waiting = partial

    def withdraw(self, stream: str) -> None:
        """The utterance is closed: what waits is out of date."""
        if place := self._places.get(stream):
            place.waiting = None

    def forget(self, stream: str) -> None:
        self._places.pop(stream, None)

    def take_due(self, now: float) -> list[Partial]:
        """Partials whose stream has been quiet for PARTIAL_INTERVAL_S."""
        due = []
        for place in self._places.values():
            if place.waiting is not None and now - place.sent_at_s >= PARTIAL_INTERVAL_S:
                due.append(place.waiting)
                place.waiting, place.sent_at_s = None, now
        return due
