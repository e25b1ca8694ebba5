"""Which language is spoken: a model's scores of several windows, weighed by their length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from asr_engine.ports import Window
from asr_engine.results import LanguageGuess

SURE: Final = 0.5
"""A window where languages mix is read in its own language if that is at least this probable."""


def weigh(windows: Sequence[Window], scores: Sequence[dict[str, float]]) -> LanguageGuess:
    """The language of most speech in `windows`, of which there is at least one."""
    total = sum(len(window.samples) for window in windows)
    sums: dict[str, float] = {}
    for window, probabilities in zip(windows, scores, strict=True):
        share = len(window.samples) / total
        for language, probability in probabilities.items():
            sums[language] = sums.get(language, 0.0) + probability * share
    best = max(sums, key=lambda language: sums[language])
    return LanguageGuess(best, min(1.0, sums[best]))


def language_of_each(scores: Sequence[dict[str, float]], *, otherwise: str) -> list[str]:
    """Each window's own language; `otherwise` where none is sure."""
    languages = []
    for one in scores:
        best, probability = max(one.items(), key=lambda item: item[1])
        languages.append(best if probability >= SURE else otherwise)
    return languages
