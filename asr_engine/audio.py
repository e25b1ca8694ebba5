"""Sample rates, conversions between sample counts, milliseconds, PCM16 and float32.

Owns no decoding: that is `asr_engine.batch.decode`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asr_engine.errors import BadPacketError

SAMPLE_RATE = 16_000
"""Rate at which every model hears audio, in samples per second."""

BYTES_PER_SAMPLE = 2
"""PCM16, mono."""

FloatSamples = NDArray[np.float32]
"""Shape [n], values in -1..1, at SAMPLE_RATE."""


def samples_to_ms(samples: int) -> int:
    """Position in whole milliseconds, rounded down."""
    return samples * 1000 // SAMPLE_RATE


def ms_to_samples(ms: int) -> int:
    return ms * SAMPLE_RATE // 1000


def pcm16_to_float(data: bytes) -> FloatSamples:
    """Little-endian PCM16 bytes to float32 [n] in -1..1.

    Raises BadPacketError for an odd number of bytes.
    """
    if len(data) % BYTES_PER_SAMPLE:
        raise BadPacketError("odd number of bytes")
    return np.frombuffer(data, dtype="<i2").astype(np.float32) / 32768.0


def float_to_pcm16(samples: NDArray[Any]) -> bytes:
    """Float samples [n] in -1..1 to little-endian PCM16 bytes, clipped."""
    scaled = (np.clip(samples, -1.0, 32767 / 32768) * 32768.0).round()
    return bytes(scaled.astype("<i2").tobytes())
