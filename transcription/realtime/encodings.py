"""What a tool may send, turned into what engines hear: PCM16 at 16 kHz, one channel.

Telephones speak G.711 at 8 kHz. It is decoded by the tables of ITU-T G.711, and each sample gets
another one between it and the next, by a half-band filter; no codec and no resampler of a whole
recording would do that packet by packet without a seam.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from asr_engine.audio import BYTES_PER_SAMPLE, SAMPLE_RATE

TELEPHONE_RATE: Final = 8000
RATES: Final[dict[str, tuple[int, ...]]] = {
    "pcm16": (SAMPLE_RATE, TELEPHONE_RATE),
    "mulaw": (TELEPHONE_RATE,),
    "alaw": (TELEPHONE_RATE,),
}
"""Encodings by name, and the sample rates that each may have."""

TAPS: Final = 32
"""Of the filter: what is above 4.6 kHz afterwards lies 80 dB below the voice."""
DELAY_SAMPLES: Final = TAPS // 2
"""At the telephone's rate: two milliseconds, by which everything is heard later."""


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """How one channel comes. Members as in `hello`, which has been judged by `wire`."""

    encoding: str = "pcm16"
    sample_rate: int = SAMPLE_RATE

    @property
    def sample_bytes(self) -> int:
        return BYTES_PER_SAMPLE if self.encoding == "pcm16" else 1

    @property
    def factor(self) -> int:
        """Samples at SAMPLE_RATE for one of these."""
        return SAMPLE_RATE // self.sample_rate


class ChannelDecoder:
    """One channel of one socket. Keeps the last samples, so that packets join without a seam."""

    def __init__(self, audio_format: AudioFormat) -> None:
        self._format = audio_format
        self._next_sample = -1
        self._tail = np.zeros(TAPS - 1)

    def decode(self, first_sample: int, data: bytes) -> bytes:
        """PCM16 LE at SAMPLE_RATE, `factor` samples for each of `data`; `first_sample` is counted
        at the format's own rate. After a jump it begins anew, as from silence."""
        if self._format.factor == 1:
            return data
        samples = _samples_of(self._format.encoding, data)
        if first_sample != self._next_sample:
            self._tail = np.zeros(TAPS - 1)
        self._next_sample = first_sample + len(samples)
        audio = np.concatenate([self._tail, samples])
        self._tail = audio[len(audio) - (TAPS - 1) :]
        doubled = np.empty(2 * len(samples))
        doubled[0::2] = audio[TAPS - 1 - DELAY_SAMPLES : len(audio) - DELAY_SAMPLES]
        doubled[1::2] = np.convolve(audio, _BETWEEN, mode="valid")
        return bytes(np.clip(doubled.round(), -32768, 32767).astype("<i2").tobytes())


def split_channels(data: bytes, audio_format: AudioFormat) -> tuple[bytes, bytes]:
    """The left and the right of samples that come by turns."""
    kind = "<i2" if audio_format.sample_bytes == BYTES_PER_SAMPLE else "u1"
    frames = np.frombuffer(data, dtype=kind).reshape(-1, 2)
    return bytes(frames[:, 0].tobytes()), bytes(frames[:, 1].tobytes())


def _samples_of(encoding: str, data: bytes) -> NDArray[np.float64]:
    if encoding == "pcm16":
        return np.frombuffer(data, dtype="<i2").astype(np.float64)
    table = _MULAW if encoding == "mulaw" else _ALAW
    decoded: NDArray[np.float64] = table[np.frombuffer(data, dtype=np.uint8)]
    return decoded


def _mulaw_table() -> NDArray[np.float64]:
    """ITU-T G.711, table 2: all bits inverted; sign, three bits of exponent, four of mantissa."""
    code = ~np.arange(256, dtype=np.int32) & 0xFF
    magnitude = ((((code & 0x0F) << 3) + 0x84) << ((code >> 4) & 7)) - 0x84
    table: NDArray[np.float64] = np.where(code & 0x80, -magnitude, magnitude).astype(np.float64)
    return table


def _alaw_table() -> NDArray[np.float64]:
    """ITU-T G.711, table 1: every other bit inverted; a set sign bit means positive."""
    code = np.arange(256, dtype=np.int32) ^ 0x55
    exponent = (code >> 4) & 7
    step = ((code & 0x0F) << 4) + np.where(exponent > 0, 0x108, 8)
    magnitude = step << np.maximum(exponent - 1, 0)
    table: NDArray[np.float64] = np.where(code & 0x80, magnitude, -magnitude).astype(np.float64)
    return table


def _between() -> NDArray[np.float64]:
    """Taps that give the value half-way between two samples: a sinc under a Kaiser window."""
    place = np.arange(TAPS) - DELAY_SAMPLES + 0.5
    taps = np.sinc(place) * np.i0(8.0 * np.sqrt(1 - (place / (TAPS / 2)) ** 2)) / np.i0(8.0)
    return np.asarray(taps / taps.sum())


_MULAW: Final = _mulaw_table()
_ALAW: Final = _alaw_table()
_BETWEEN: Final = _between()
