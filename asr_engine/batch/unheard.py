"""Speech that a model passed over.

A decoder sometimes jumps over seconds of speech inside a window, or stops early. Such a hole shows
as speech that no word covers. The model then hears on from where the hole begins, and is told what
was said until there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from asr_engine.audio import ms_to_samples
from asr_engine.batch.segments import LONGEST_WORD_MS
from asr_engine.ports import Onward, Window
from asr_engine.results import Word

HOLE_MS: Final = 1_500
"""Speech without a word beyond this is a hole."""
LEAD_MS: Final = 200
"""So much before the hole the model begins: a word's end is not exact."""


@dataclass(frozen=True, slots=True)
class Hole:
    """Samples [`start`, `end`) of a window's: speech without a word."""

    start: int
    end: int


def holes_in(window: Window, words: Sequence[Word]) -> list[Hole]:
    """In order."""
    covered = []
    for word in words:
        end = ms_to_samples(word.end_ms) - window.start_sample
        start = ms_to_samples(word.start_ms) - window.start_sample
        covered.append((max(start, end - ms_to_samples(LONGEST_WORD_MS)), end))
    covered.append((len(window.samples), len(window.samples)))
    holes = []
    reached = 0
    for start, end in covered:
        if _speech_in(window, reached, start) >= ms_to_samples(HOLE_MS):
            holes.append(Hole(reached, start))
        reached = max(reached, end)
    return holes


def go_on_from(window: Window, words: Sequence[Word], vain: Collection[int] = ()) -> Onward | None:
    """Where to hear on: at the beginning of a hole, or of speech in it, where most speech follows.

    `vain` are the samples of those from which nothing was heard. None where no hole is left.
    """
    places = []
    for hole in holes_in(window, words):
        begins = [span.speech_start for span in window.spans]
        for start in (hole.start, *(one for one in begins if hole.start < one < hole.end)):
            speech = _speech_in(window, start, hole.end)
            if _begin(start) not in vain and speech >= ms_to_samples(HOLE_MS):
                places.append((speech, start))
                break
    if not places:
        return None
    _, start = max(places)
    before = tuple(
        word
        for word in words
        if ms_to_samples(word.start_ms + word.end_ms) // 2 - window.start_sample <= start
    )
    return Onward(before, _begin(start))


def _begin(start: int) -> int:
    return max(0, start - ms_to_samples(LEAD_MS))


def _speech_in(window: Window, start: int, end: int) -> int:
    return sum(
        max(0, min(end, span.speech_end) - max(start, span.speech_start)) for span in window.spans
    )
