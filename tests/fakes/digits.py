"""Spoken digits of `tests/data/nemo` and the model that knows them (licences: README there)."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jiwer
import numpy as np
import soundfile

from asr_engine.audio import FloatSamples

DIGITS_DIR = Path(__file__).resolve().parent.parent / "data" / "nemo"
DIGITS_MODEL = DIGITS_DIR / "digits.nemo"


@dataclass(frozen=True, slots=True)
class Digits:
    """A recording: `kind` is `seen`, `heldout` (another speaker) or `long` (a minute)."""

    path: Path
    text: str
    kind: str
    word_times: tuple[tuple[float, float], ...]

    def samples(self) -> FloatSamples:
        """float32 [n], 16 kHz."""
        samples: FloatSamples = soundfile.read(self.path, dtype="float32")[0]
        return samples

    def samples_to_last_word(self) -> FloatSamples:
        """The audio cut where its last word ends."""
        return self.samples()[: round(self.word_times[-1][1] * 16_000)]


@cache
def digits(kind: str | None = None) -> tuple[Digits, ...]:
    """The recordings of one kind, or all."""
    lines = (DIGITS_DIR / "manifest.jsonl").read_text().splitlines()
    found = [
        Digits(
            DIGITS_DIR / item["file"],
            item["text"],
            item["set"],
            tuple((start, end) for start, end in item["word_times"]),
        )
        for item in map(json.loads, lines)
    ]
    return tuple(item for item in found if kind in {None, item.kind})


def restored(path: Path) -> Any:
    """A NeMo model, whatever its libraries warn of."""
    import torch

    from asr_engine.backends.cache_aware import nemo

    # Two threads that wait for each other at every small operation make a step ten times slower.
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nemo.restore(path, "cpu")


@cache
def digits_model() -> Any:
    """The model of DIGITS_MODEL, loaded once for all tests."""
    return restored(DIGITS_MODEL)


def padded(samples: FloatSamples, multiple: int, *, silence: int = 0) -> FloatSamples:
    """`samples`, at least `silence` zeros, and as many as make a multiple of `multiple`."""
    return np.pad(samples, (0, silence + -(len(samples) + silence) % multiple))


def word_errors(item: Digits, said: str) -> int:
    """Words substituted, inserted and deleted. (The English normaliser would make one number of
    spoken digits, and one error of several.)"""
    counts = jiwer.process_words(item.text, said)
    return int(counts.substitutions + counts.insertions + counts.deletions)
