"""Speech that a model passed over.

A decoder sometimes jumps over seconds of speech inside a window, or stops early. Such a hole shows
as speech that no word covers. The window is then heard again in two halves, cut in that hole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from asr_engine.audio import ms_to_samples
from asr_engine.ports import Window, WindowSpan
from asr_engine.results import Segment, Word

HOLE_MS: Final = 3_000
"""Speech without a word beyond this is a hole."""
LONGEST_WORD_MS: Final = 2_000
"""What a word covers at most, before its end: alignment stretches the word after a hole over it."""


def halves_around_hole(window: Window, heard: Sequence[Segment]) -> tuple[Window, Window] | None:
    """The window in two, cut in its largest hole; None where it has none."""
    hole = _largest_hole(window, [word for segment in heard for word in segment.words])
    if hole is None:
        return None
    middle = sum(hole) // 2
    inner = [span.offset for span in window.spans[1:] if hole[0] <= span.offset <= hole[1]]
    cut = min(inner, key=lambda offset: abs(offset - middle), default=middle)
    return _part(window, 0, cut), _part(window, cut, len(window.samples))


def count_words(heard: Sequence[Segment]) -> int:
    return sum(len(segment.words) for segment in heard)


def _largest_hole(window: Window, words: Sequence[Word]) -> tuple[int, int] | None:
    """[start, end) in samples of the window, without speech at most at its ends."""
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
            largest, speech = (reached, start), _speech_in(window, reached, start)
        reached = max(reached, end)
    return largest


def _speech_in(window: Window, start: int, end: int) -> int:
    return sum(
        max(0, min(end, span.speech_end) - max(start, span.speech_start)) for span in window.spans
    )


def _part(window: Window, start: int, end: int) -> Window:
    """Samples [start, end) of a window as a window of its own."""
    ends = [span.offset for span in window.spans[1:]] + [len(window.samples)]
    spans = []
    for span, span_end in zip(window.spans, ends, strict=True):
        first, last = max(span.offset, start), min(span_end, end)
        if first < last:
            spans.append(
                WindowSpan(
                    offset=first - start,
                    start_sample=span.start_sample + first - span.offset,
                    speech_start=min(max(span.speech_start, first), last) - start,
                    speech_end=min(max(span.speech_end, first), last) - start,
                )
            )
    return replace(
        window,
        start_sample=spans[0].start_sample,
        samples=window.samples[start:end],
        spans=tuple(spans),
        features=None,
    )
