"""Speech that a model passed over.

A decoder sometimes jumps over seconds of speech inside a window, or stops early. Such a hole shows
as speech that no word covers. The model then hears on from where the hole begins, and is told what
was said until there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from asr_engine.audio import ms_to_samples
from asr_engine.ports import Onward, Window
from asr_engine.results import Word

HOLE_MS: Final = 3_000
"""Speech without a word beyond this is a hole."""
LEAD_MS: Final = 200
"""So much before the hole the model begins: a word's end is not exact."""
LONGEST_WORD_MS: Final = 2_000
"""What a word covers at most, before its end: alignment stretches the word after a hole over it."""


def go_on_from(window: Window, words: Sequence[Word]) -> Onward | None:
    """Where to hear on because the largest hole of all begins there; None where there is none."""
    start = _largest_hole(window, words)
    if start is None:
        return None
    before = tuple(
        word
        for word in words
        if ms_to_samples(word.start_ms + word.end_ms) // 2 - window.start_sample <= start
    )
    return Onward(before, max(0, start - ms_to_samples(LEAD_MS)))


def _largest_hole(window: Window, words: Sequence[Word]) -> int | None:
    """Where it begins, in samples of the window."""
    covered = [(0, 0)]
    for word in words:
        end = ms_to_samples(word.end_ms) - window.start_sample
        start = ms_to_samples(word.start_ms) - window.start_sample
        covered.append((max(start, end - ms_to_samples(LONGEST_WORD_MS)), end))
    covered.append((len(window.samples), len(window.samples)))
    largest, speech = None, ms_to_samples(HOLE_MS)
    reached = 0
    for start, end in covered:
        if start > reached and _speech_in(window, reached, start) >= speech:
            largest, speech = reached, _speech_in(window, reached, start)
        reached = max(reached, end)
    return largest


def _speech_in(window: Window, start: int, end: int) -> int:
    return sum(
        max(0, min(end, span.speech_end) - max(start, span.speech_start)) for span in window.spans
    )
