"""Log-mel features as Kaldi computes them, which the voiceprint network was trained on."""

from __future__ import annotations

import functools
from typing import Final

import numpy as np
from numpy.typing import NDArray

from asr_engine.audio import SAMPLE_RATE, FloatSamples

FRAME_SAMPLES: Final = 400
STEP_SAMPLES: Final = 160
FFT_SAMPLES: Final = 512
BANDS: Final = 80
MIN_HZ: Final = 20.0
PREEMPHASIS: Final = 0.97
FLOOR: Final = np.float32(np.finfo(np.float32).eps)


def log_mel(samples: FloatSamples) -> NDArray[np.float32]:
    """Features float32 [frames, 80]: frames of 25 ms every 10 ms, whole ones only.

    As `compute-fbank-feats` of Kaldi with `--dither=0 --window-type=povey`, of samples in -1..1.
    """
    if len(samples) < FRAME_SAMPLES:
        return np.zeros((0, BANDS), np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(samples, FRAME_SAMPLES)[::STEP_SAMPLES]
    frames = frames - frames.mean(axis=1, keepdims=True)
    before = np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    windowed = (frames - PREEMPHASIS * before) * _window()
    power = np.square(np.abs(np.fft.rfft(windowed, FFT_SAMPLES)[:, :-1])).astype(np.float32)
    logs: NDArray[np.float32] = np.log(np.maximum(power @ _bands(), FLOOR))
    return logs


@functools.cache
def _window() -> NDArray[np.float32]:
    """Kaldi's own: a Hann window to the power of 0.85."""
    return (np.hanning(FRAME_SAMPLES) ** 0.85).astype(np.float32)


@functools.cache
def _bands() -> NDArray[np.float32]:
    """Weights [256, 80] of triangles that are even on the mel scale."""
    edges = np.linspace(_mel(MIN_HZ), _mel(SAMPLE_RATE / 2), BANDS + 2)
    bins = _mel(np.arange(FFT_SAMPLES // 2) * SAMPLE_RATE / FFT_SAMPLES)[:, None]
    left, middle, right = edges[:-2], edges[1:-1], edges[2:]
    rising = (bins - left) / (middle - left)
    falling = (right - bins) / (right - middle)
    return np.maximum(0, np.minimum(rising, falling)).astype(np.float32)


def _mel(hz: float | NDArray[np.float64]) -> NDArray[np.float64]:
    return 1127.0 * np.log(1.0 + np.asarray(hz) / 700.0)
