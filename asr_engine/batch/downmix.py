"""Channels to one, so that whoever speaks in any of them is heard."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asr_engine.audio import SAMPLE_RATE, FloatSamples


class Downmix:
    """Channels to mono, block by block: the mean of those that sound.

    Silent channels do not dilute it, and where channels cancel each other (one wired in antiphase)
    the loudest is heard alone. The choice is made per block and faded in over 10 ms.
    """

    SILENT = 0.01
    """Power, relative to the loudest channel, below which a channel counts as silent."""
    CANCELLED = 0.25
    """Power of the mean, relative to that of uncorrelated channels, that means antiphase."""
    FADE_SAMPLES = SAMPLE_RATE // 100

    def __init__(self) -> None:
        self._weights: NDArray[np.float32] | None = None

    def mono(self, block: NDArray[np.float32]) -> FloatSamples:
        """float32 [channels, n] to [n]."""
        if block.shape[0] == 1:
            return np.ascontiguousarray(block[0])
        weights = self._choose(block)
        before = self._weights
        self._weights = weights
        if before is None or before.shape != weights.shape or np.array_equal(before, weights):
            steady: FloatSamples = weights @ block
            return steady
        fade = np.ones(block.shape[1], np.float32)
        fade[: self.FADE_SAMPLES] = np.linspace(0, 1, self.FADE_SAMPLES)[: block.shape[1]]
        faded: FloatSamples = (weights @ block) * fade + (before @ block) * (1 - fade)
        return faded

    def _choose(self, block: NDArray[np.float32]) -> NDArray[np.float32]:
        power = np.mean(np.square(block), axis=1)
        loudest = float(power.max())
        if loudest == 0.0:
            return np.full(len(power), 1 / len(power), np.float32)
        sounding = power >= self.SILENT * loudest
        count = int(sounding.sum())
        weights: NDArray[np.float32] = (sounding / count).astype(np.float32)
        mean_power = float(np.mean(np.square(weights @ block)))
        if mean_power < self.CANCELLED * float(power[sounding].mean()) / count:
            weights = np.zeros(len(power), np.float32)
            weights[int(power.argmax())] = 1.0
        return weights
