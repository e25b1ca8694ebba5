"""Which language is spoken: a model's scores of several windows, weighed by their length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from asr_engine.audio import SAMPLE_RATE
from asr_engine.ports import Window
from asr_engine.results import LanguageGuess

LIKELY: Final = 0.5
"""A window where languages mix is read in a language that is spoken around it if that is at least
this probable."""
UNMISTAKABLE: Final = 0.75
"""It is read in one that nobody speaks around it if that is at least this probable: hurried English
passes for Latin or Welsh."""
CERTAIN: Final = 0.9
"""Where nobody said that languages mix, a window is read in another language than the recording's
if that is at least this probable. None of 475 windows in one language was so wrong."""
ENOUGH_SAMPLES: Final = 5 * SAMPLE_RATE
"""Speech that it takes to be certain."""


def weigh(windows: Sequence[Window], scores: Sequence[Mapping[str, float]]) -> LanguageGuess:
    """The language of most speech in `windows`, of which there is at least one."""
    total = sum(len(window.samples) for window in windows)
    sums: dict[str, float] = {}
    for window, probabilities in zip(windows, scores, strict=True):
        share = len(window.samples) / total
        for language, probability in probabilities.items():
            sums[language] = sums.get(language, 0.0) + probability * share
    best = max(sums, key=lambda language: sums[language])
    return LanguageGuess(best, min(1.0, sums[best]))


def language_of_each(scores: Sequence[Mapping[str, float]], *, otherwise: str) -> list[str]:
    """Each window's own language, where languages mix.

    Where none is sure, it is the most probable one of `otherwise` and those that other windows are
    certain of.
    """
    bests = [_best(one) for one in scores]
    around = {language for language, probability in bests if probability >= CERTAIN} | {otherwise}
    languages = []
    for one, (best, probability) in zip(scores, bests, strict=True):
        enough = LIKELY if best in around else UNMISTAKABLE
        # Sorted, so that a tie goes the same way after a restart.
        known = max(sorted(around), key=lambda language: one.get(language, 0.0))
        languages.append(best if probability >= enough else known)
    return languages


def languages_but_for(
    windows: Sequence[Window], scores: Sequence[Mapping[str, float]], *, main: str
) -> list[str]:
    """`main`, but for windows that are long enough and certainly in another language."""
    languages = []
    for window, one in zip(windows, scores, strict=True):
        best, probability = _best(one)
        is_certain = probability >= CERTAIN and speech_samples(window) >= ENOUGH_SAMPLES
        languages.append(best if is_certain else main)
    return languages


def speech_samples(window: Window) -> int:
    """How much of it is speech."""
    if not window.spans:
        return len(window.samples)
    return sum(span.speech_end - span.speech_start for span in window.spans)


def _best(scores: Mapping[str, float]) -> tuple[str, float]:
    return max(scores.items(), key=lambda item: item[1])
