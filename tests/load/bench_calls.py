"""Calls whose sides lie in two channels, heard as the product hears them and mixed into one.

    python -m tests.load.bench_calls MANIFEST [--folder en_read] [--turns 10] [--calls 6]
        [--overlap-s 0.3] [--leak-db 35]

A call is made of a manifest's recordings, taken by turns for its two sides, as a telephone passes
them: 8 kHz in mu-law. Each turn begins before the other one's end, and each channel holds the other
one `--leak-db` quieter. The survey decides how the channels are heard, as it does for an upload.

Prints one JSON object in a line: how the calls were heard, the error rate of each side's words by
its speaker (a word on the wrong side is wrong on both), and those of both sides' words, in order of
time, beside a mix of the channels and the recordings by themselves.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import soundfile

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.backends import silero
from asr_engine.backends.whisper_batch import WhisperBatchModel
from asr_engine.backends.whisper_models import load_whisper
from asr_engine.batch import two_pass
from asr_engine.batch.channels import survey
from asr_engine.batch.decode import decode_audio
from asr_engine.batch.two_pass import Pass, TwoPassOptions
from asr_engine.config import engine_settings
from asr_engine.evaluation import Entry, count_errors, read_manifest
from asr_engine.results import Segment
from asr_engine.tracks import CHANNEL_LABELS, ChannelPlan, plan_of

CALL_RATE: Final = 8_000
PEAK: Final = 0.5


@dataclass(frozen=True, slots=True)
class Call:
    """Its file, the turns of both sides in order, and each one's (side, start in seconds)."""

    path: Path
    turns: tuple[Entry, ...]
    language: str

    def text(self, side: int | None = None) -> str:
        """What was said, by one side or by both in turns."""
        return " ".join(
            entry.text or "" for index, entry in enumerate(self.turns) if side in {None, index % 2}
        )


def make_calls(
    entries: Sequence[Entry], folder: Path, *, calls: int, turns: int, overlap_s: float, leak: float
) -> Iterable[Call]:
    """Calls in `folder`, the same for the same entries. Neighbours in a manifest are often of one
    speaker, so a call takes one side from each half of them."""
    half = len(entries) // 2
    for number in range(calls):
        first = number * (turns // 2)
        chosen = [entries[(first + turn // 2) % half + half * (turn % 2)] for turn in range(turns)]
        sides = _sides([_voice(entry.path) for entry in chosen], round(overlap_s * CALL_RATE))
        sides = sides + leak * sides[::-1]
        path = folder / f"call-{number}.wav"
        soundfile.write(path, (sides * PEAK).T, CALL_RATE, subtype="ULAW")
        yield Call(path, tuple(chosen), chosen[0].language or "en")


def _voice(path: Path) -> FloatSamples:
    """A recording at the telephone's rate, band-limited, as loud as it may be."""
    samples = np.concatenate(list(decode_audio(path)))
    length = len(samples) * CALL_RATE // SAMPLE_RATE
    voice = np.fft.irfft(np.fft.rfft(samples)[: length // 2 + 1], length)
    return np.asarray(voice / max(float(np.abs(voice).max()), 1e-9), np.float32)


def _sides(voices: Sequence[FloatSamples], overlap: int) -> FloatSamples:
    """[2, n]: the voices by turns, each beginning `overlap` samples before the last one's end, at
    most half of the shortest."""
    overlap = min(overlap, *(len(voice) // 2 for voice in voices))
    length = sum(map(len, voices)) - overlap * (len(voices) - 1)
    sides = np.zeros((2, length), np.float32)
    start = 0
    for turn, voice in enumerate(voices):
        sides[turn % 2, start : start + len(voice)] += voice
        start += len(voice) - overlap
    return sides


class Listener:
    """Refined segments of a file under a plan."""

    def __init__(self) -> None:
        settings = engine_settings()
        self._model = WhisperBatchModel(
            load_whisper(settings, settings.batch_model),
            settings.batch_model,
            refine_share=settings.refine_share,
        )
        self._finder = silero.create_finder(settings)

    def plan(self, path: Path) -> ChannelPlan:
        return plan_of(survey(path, finder=self._finder))

    def hear(self, path: Path, plan: ChannelPlan, language: str) -> list[Segment]:
        groups = two_pass.transcribe(
            path,
            model=self._model,
            finder=self._finder,
            options=TwoPassOptions(language=language, plan=plan),
        )
        return [
            segment for group in groups if group.pass_ is Pass.REFINED for segment in group.segments
        ]


class Rates:
    """Errors and units of several ways to hear."""

    def __init__(self) -> None:
        self._errors: dict[str, list[int]] = {}

    def add(self, name: str, reference: str, heard: Iterable[Segment], language: str) -> None:
        text = " ".join(segment.text for segment in heard)
        count = count_errors(reference, text, language)
        one = self._errors.setdefault(name, [0, 0])
        one[0] += count.errors
        one[1] += count.units

    def as_json(self) -> dict[str, dict[str, float]]:
        return {
            name: {"errors": errors, "units": units, "rate": round(errors / units, 4)}
            for name, (errors, units) in self._errors.items()
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--folder", default="en_read")
    parser.add_argument("--calls", type=int, default=6)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--overlap-s", type=float, default=0.3)
    parser.add_argument("--leak-db", type=float, default=35.0)
    options = parser.parse_args()
    entries = [
        entry
        for entry in read_manifest(options.manifest)
        if entry.folder == options.folder
        and entry.is_scored
        and entry.text
        and entry.language not in {None, "mul"}  # a call is heard in one language
    ]
    with tempfile.TemporaryDirectory() as folder:
        calls = make_calls(
            entries,
            Path(folder),
            calls=options.calls,
            turns=options.turns,
            overlap_s=options.overlap_s,
            leak=10 ** (-options.leak_db / 20),
        )
        found = measure(calls, Path(folder))
    made = {name: getattr(options, name) for name in ("folder", "turns", "overlap_s", "leak_db")}
    json.dump(made | found, sys.stdout)
    sys.stdout.write("\n")


def measure(calls: Iterable[Call], folder: Path) -> dict[str, Any]:
    listener, rates, modes = Listener(), Rates(), []
    for call in calls:
        plan = listener.plan(call.path)
        modes.append(plan.mode.value)
        heard = listener.hear(call.path, plan, call.language)
        rates.add("both sides", call.text(), heard, call.language)
        for side, label in enumerate(CHANNEL_LABELS):
            said = [segment for segment in heard if segment.speaker == label]
            rates.add("by speaker", call.text(side), said, call.language)
        mixed = listener.hear(call.path, ChannelPlan(), call.language)
        rates.add("mixed", call.text(), mixed, call.language)
        for entry in call.turns:
            alone = folder / "alone.wav"
            soundfile.write(alone, PEAK * _voice(entry.path), CALL_RATE, subtype="ULAW")
            said = listener.hear(alone, ChannelPlan(), call.language)
            rates.add("recordings alone", entry.text or "", said, call.language)
        sys.stderr.write(f"{call.path.name} {plan.mode}\n")
    return {"heard": modes, "rates": rates.as_json()}


if __name__ == "__main__":
    main()
