"""Diarisation error rate: missed, false and wrongly attributed speech, in shares of speech.

As NIST's md-eval counts it, on a grid of 10 ms: speech that overlaps counts for each speaker, and
a collar around each border of the reference is not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from asr_engine.diarisation.port import Turn

STEP_MS: Final = 10
COLLAR_MS: Final = 250


@dataclass(frozen=True, slots=True)
class DiarisationScore:
    """Milliseconds of speech that were missed, invented, given to the wrong speaker, and all."""

    missed_ms: int = 0
    false_ms: int = 0
    confused_ms: int = 0
    speech_ms: int = 0

    def __add__(self, other: DiarisationScore) -> DiarisationScore:
        return DiarisationScore(
            self.missed_ms + other.missed_ms,
            self.false_ms + other.false_ms,
            self.confused_ms + other.confused_ms,
            self.speech_ms + other.speech_ms,
        )

    @property
    def rate(self) -> float | None:
        """None where nobody speaks."""
        if not self.speech_ms:
            return None
        return (self.missed_ms + self.false_ms + self.confused_ms) / self.speech_ms


def score_turns(
    reference: Sequence[Turn], hypothesis: Sequence[Turn], *, collar_ms: int = COLLAR_MS
) -> DiarisationScore:
    """Labels may differ: the best one-to-one match of speakers counts."""
    end_ms = max((turn.end_ms for turn in (*reference, *hypothesis)), default=0)
    middles = np.arange(0, end_ms, STEP_MS) + STEP_MS / 2
    counted = np.ones(len(middles), bool)
    for turn in reference:
        for border in (turn.start_ms, turn.end_ms):
            counted &= np.abs(middles - border) > collar_ms
    spoken = _grid(reference, middles)[:, counted]
    heard = _grid(hypothesis, middles)[:, counted]
    many, few = spoken.sum(axis=0), heard.sum(axis=0)
    shared = (spoken[:, None] & heard[None]).sum(axis=2)
    return DiarisationScore(
        missed_ms=STEP_MS * int(np.maximum(many - few, 0).sum()),
        false_ms=STEP_MS * int(np.maximum(few - many, 0).sum()),
        confused_ms=STEP_MS * (int(np.minimum(many, few).sum()) - _best_match(shared)),
        speech_ms=STEP_MS * int(many.sum()),
    )


def _grid(turns: Sequence[Turn], middles: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Who speaks at each point: bool [speakers, points]."""
    labels = sorted({turn.speaker for turn in turns})
    grid = np.zeros((len(labels), len(middles)), bool)
    for turn in turns:
        grid[labels.index(turn.speaker)] |= (middles >= turn.start_ms) & (middles < turn.end_ms)
    return grid


def _best_match(shared: NDArray[np.int_]) -> int:
    """The largest sum of one-to-one pairs of rows and columns, by trying them all with a memory."""
    if shared.shape[0] > shared.shape[1]:
        shared = shared.T
    # Speakers that share nothing cannot add to the sum; those of a meeting are a dozen at most.
    columns = [int(column) for column in np.flatnonzero(shared.sum(axis=0))]

    @cache
    def best(row: int, taken: int) -> int:
        if row == len(shared):
            return 0
        sums = [best(row + 1, taken)]
        for place, column in enumerate(columns):
            if not taken >> place & 1 and shared[row, column]:
                sums.append(int(shared[row, column]) + best(row + 1, taken | 1 << place))
        return max(sums)

    return best(0, 0)
