"""Raw PCM to FLAC, believed only after it has been decoded and compared."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import numpy as np
import soundfile

from asr_engine.audio import BYTES_PER_SAMPLE, SAMPLE_RATE

_BLOCK_SAMPLES: Final = 10 * SAMPLE_RATE


class FlacMismatchError(Exception):
    """The file does not hold the samples that went into it: the PCM must stay."""


def write_verified_flac(pcm: Path, flac: Path) -> int:
    """Encode `pcm` (PCM16 LE mono, SAMPLE_RATE) as `flac`, durably; returns its samples.

    Constant memory. `flac` appears under its name only when it has been verified, so what stands
    there is whole. Raises FlacMismatchError, OSError, soundfile.SoundFileError.
    """
    part = flac.with_name("flac.part")
    with (
        pcm.open("rb") as source,
        soundfile.SoundFile(
            part, "w", samplerate=SAMPLE_RATE, channels=1, format="FLAC", subtype="PCM_16"
        ) as target,
    ):
        while block := source.read(_BLOCK_SAMPLES * BYTES_PER_SAMPLE):
            target.write(np.frombuffer(block, dtype="<i2"))
    samples = _compare(pcm, part)
    descriptor = os.open(part, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    part.rename(flac)
    return samples


def _compare(pcm: Path, flac: Path) -> int:
    samples = 0
    with pcm.open("rb") as source, soundfile.SoundFile(flac) as decoded:
        while block := source.read(_BLOCK_SAMPLES * BYTES_PER_SAMPLE):
            heard = decoded.read(len(block) // BYTES_PER_SAMPLE, dtype="int16")
            if heard.astype("<i2").tobytes() != block:
                raise FlacMismatchError
            samples += len(heard)
        if len(decoded.read(1)):
            raise FlacMismatchError
    return samples
