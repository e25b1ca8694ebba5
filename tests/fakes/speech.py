"""Recorded speech of `tests/data/audio` (licences: see the README there)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.batch.decode import decode_audio

AUDIO_DIR = Path(__file__).resolve().parent.parent / "data" / "audio"


@dataclass(frozen=True, slots=True)
class Speech:
    """A recording of one utterance and what it says."""

    file_name: str
    text: str
    language: str = "en"

    @property
    def path(self) -> Path:
        return AUDIO_DIR / self.file_name

    def samples(self) -> FloatSamples:
        """float32 [n], 16 kHz."""
        return np.concatenate(list(decode_audio(self.path)))


SILLY = Speech("ls_1688-142285-0002.flac", "you don't mean that you thought me so silly")
ACCOUNT = Speech(
    "ls_1688-142285-0003.flac",
    "i really liked that account of himself better than anything else he said",
)
PHONES = Speech("BAC009S0150W0274.flac", "为了重整智能手机业务", "zh")


def silence(seconds: float) -> FloatSamples:
    return np.zeros(int(seconds * SAMPLE_RATE), np.float32)
