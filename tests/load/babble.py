"""Recordings in which six others talk in the background, made from a manifest's own.

A folder of noisy recordings is small; this makes one of any size whose words are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import soundfile

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.batch.decode import decode_audio
from asr_engine.evaluation import Entry

TALKERS: Final = 6
PEAK: Final = 0.9


def in_babble(entries: Sequence[Entry], decibels: float, folder: Path) -> Iterator[Entry]:
    """Each of `entries`, of one folder, `decibels` louder than six others: files in `folder`.

    The same entries give the same samples. Raises ValueError for too few entries.
    """
    if len(entries) <= TALKERS:
        raise ValueError(f"babble needs more than {TALKERS} recordings: {entries[0].folder}")
    voices = [_level(np.concatenate(list(decode_audio(entry.path)))) for entry in entries]
    # Neighbours in a manifest are often of one speaker.
    step = len(entries) // (TALKERS + 1)
    for index, entry in enumerate(entries):
        others = [voices[(index + step * k) % len(voices)] for k in range(1, TALKERS + 1)]
        length = len(voices[index])
        babble = _level(np.sum([np.resize(voice, length) for voice in others], axis=0))
        mixed = voices[index] + babble * 10 ** (-decibels / 20)
        name = f"{entry.folder} in babble, {decibels:g} dB"
        path = folder / f"{len(list(folder.iterdir()))}.wav"
        soundfile.write(path, mixed * (PEAK / np.abs(mixed).max()), SAMPLE_RATE, subtype="PCM_16")
        yield replace(entry, file=f"{name}/{Path(entry.file).name}", path=path)


def _level(samples: FloatSamples) -> FloatSamples:
    """At a mean power of 1."""
    return np.asarray(samples / max(float(np.sqrt(np.mean(samples**2))), 1e-9), np.float32)
