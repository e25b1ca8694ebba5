"""Partials wait here for their turn: five a second per session, only the newest."""

from __future__ import annotations

from dataclasses import dataclass

from asr_engine.events import Partial

PARTIAL_INTERVAL_S = 0.2
BURST = 3
"""Turns that a quiet stream has saved up. With one alone, a partial that came shortly after another
would wait for nearly a whole turn, and so would each one after it until the speaker pauses."""
ENOUGH = 0.85
"""Of a turn: packets come every 200 ms too, give or take, and must not wait for the slowest."""


@dataclass(slots=True)
class _Place:
    turns_at_s: float
    waiting: Partial | None = None
    turns: float = BURST


class PartialBoard:
    """One place per stream that spoke lately; a stream that ends in any way leaves none."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}

    @property
    def is_empty(self) -> bool:
        return not self._places

    def put(self, partial: Partial) -> None:
        """Replaces what waits for the same stream."""
        self._places.setdefault(partial.stream, _Place(float("-inf"))).waiting = partial

    def withdraw(self, stream: str) -> None:
        """The utterance is closed, or the stream is: what waits is out of date."""
        if place := self._places.get(stream):
            place.waiting = None

    def take_due(self, now: float) -> list[Partial]:
        """Partials of the streams that have a turn left, which this takes."""
        due = []
        for stream, place in list(self._places.items()):
            gained = (now - place.turns_at_s) / PARTIAL_INTERVAL_S
            place.turns = min(BURST, place.turns + gained)
            place.turns_at_s = now
            if place.waiting is not None and place.turns >= ENOUGH:
                due.append(place.waiting)
                place.waiting = None
                place.turns -= 1
            elif place.waiting is None and place.turns == BURST:
                del self._places[stream]
        return due
