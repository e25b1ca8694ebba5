"""Hours of audio through the batch engine: memory, progress, and how soon a cancel is heard.

    python -m tests.load.long_recordings [silent spoken real] [--silent-hours 10]
        [--spoken-hours 12] [--real-minutes 30] [--cancel-after-s 20]

`silent` is digital silence with the real finder and model, `spoken` coded words with the scripted
ones (every word must come back, in order), `real` a recording of speech over and over with the real
model, once whole and once cancelled in the middle. Each runs in a process of its own. One JSON line
for each: size of the file, seconds, the most memory that the process held and had after its first
group, whether progress only rose and reached the end, and seconds from the cancel to the stop.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import soundfile

from asr_engine import registry
from asr_engine.audio import SAMPLE_RATE
from asr_engine.backends import scripted
from asr_engine.batch import two_pass
from asr_engine.batch.decode import decode_audio
from asr_engine.batch.two_pass import Pass, TwoPassOptions
from asr_engine.config import EngineSettings, engine_settings
from asr_engine.errors import CancelledError
from tests.e2e.conftest import ROOT

PARTS: Final = ("silent", "spoken", "real")
SAMPLE: Final = ROOT / "static" / "audio" / "sample.ogg"
WORDS_PER_UTTERANCE: Final = 30
PAUSE_MS: Final = 2000
BLOCKS_AT_ONCE: Final = 600


def write_silence(path: Path, hours: float) -> None:
    block = np.zeros(60 * SAMPLE_RATE, np.int16)
    with soundfile.SoundFile(path, "w", SAMPLE_RATE, 1, "PCM_16") as file:
        for _ in range(round(hours * 60)):
            file.write(block)


def write_words(path: Path, hours: float) -> int:
    """Numbered words for so long; returns how many."""
    per_utterance_s = WORDS_PER_UTTERANCE * scripted.BLOCK_SAMPLES / SAMPLE_RATE + PAUSE_MS / 1000
    words = max(1, round(hours * 3600 / per_utterance_s)) * WORDS_PER_UTTERANCE
    blocks = scripted.script(words, utterance_words=WORDS_PER_UTTERANCE, pause_ms=PAUSE_MS)
    with soundfile.SoundFile(path, "w", SAMPLE_RATE, 1, "PCM_16") as file:
        for start in range(0, len(blocks), BLOCKS_AT_ONCE):
            file.write(scripted.encode_blocks(blocks[start : start + BLOCKS_AT_ONCE]))
    return words


def write_speech(path: Path, minutes: float) -> None:
    """The sample over and over."""
    samples = np.concatenate(list(decode_audio(SAMPLE)))
    with soundfile.SoundFile(path, "w", SAMPLE_RATE, 1, "PCM_16") as file:
        written = 0
        while written < minutes * 60 * SAMPLE_RATE:
            file.write(samples)
            written += len(samples)


def peak_mib() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


class Run:
    """One recording heard, with what is to be known of it."""

    def __init__(self, settings: EngineSettings, path: Path) -> None:
        self._model, self._finder = registry.batch_model(settings), registry.speech_finder(settings)
        self._path = path
        self._cancelled_at_s = float("inf")
        self.facts: dict[str, Any] = {
            "model": self._model.name,
            "file_mib": round(path.stat().st_size / 2**20, 1),
            "loaded_mib": peak_mib(),
        }

    def hear(self, cancel_after_s: float | None = None) -> Iterator[str]:
        """The text of the refined segments."""
        started = time.monotonic()
        if cancel_after_s is not None:
            self._cancelled_at_s = started + cancel_after_s
        done = {Pass.DRAFT: 0, Pass.REFINED: 0}
        rises, groups, total = True, 0, 0
        try:
            for group in two_pass.transcribe(
                self._path,
                model=self._model,
                finder=self._finder,
                options=TwoPassOptions(language="en"),
                should_stop=lambda: time.monotonic() >= self._cancelled_at_s,
            ):
                rises = rises and group.audio_done_ms >= done[group.pass_]
                done[group.pass_], total = group.audio_done_ms, group.audio_total_ms
                groups += group.pass_ is Pass.REFINED
                if groups == 1:
                    self.facts.setdefault("after_first_group_mib", peak_mib())
                if group.pass_ is Pass.REFINED:
                    yield from (segment.text for segment in group.segments)
        except CancelledError:
            self.facts["cancelled_after_s"] = round(time.monotonic() - self._cancelled_at_s, 2)
        self.facts |= {
            "seconds": round(time.monotonic() - started, 1),
            "audio_hours": round(total / 3_600_000, 2),
            "groups": groups,
            "peak_mib": peak_mib(),
            "progress_rises": rises,
            "progress_reached_the_end": set(done.values()) == {total},
        }


def silent(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    write_silence(path, options.silent_hours)
    run = Run(engine_settings(), path)
    return {"words": sum(len(text.split()) for text in run.hear()), **run.facts}


def spoken(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    expected = write_words(path, options.spoken_hours)
    settings = engine_settings().model_copy(update={"batch_backend": "scripted"})
    run = Run(settings, path)
    count, is_in_order = 0, True
    for text in run.hear():
        for word in text.split():
            is_in_order = is_in_order and word.strip(".,").lower() == scripted.word_text(
                count % scripted.WORD_COUNT
            )
            count += 1
    return {"words": count, "expected": expected, "is_in_order": is_in_order, **run.facts}


def real(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    write_speech(path, options.real_minutes)
    whole = Run(engine_settings(), path)
    words = sum(len(text.split()) for text in whole.hear())
    cancelled = Run(engine_settings(), path)
    sum(1 for _ in cancelled.hear(cancel_after_s=options.cancel_after_s))
    return {
        "words": words,
        **whole.facts,
        "cancel_asked_after_s": options.cancel_after_s,
        "cancelled_after_s": cancelled.facts.get("cancelled_after_s"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=PARTS, default=[])
    parser.add_argument("--silent-hours", type=float, default=10.0)
    parser.add_argument("--spoken-hours", type=float, default=12.0)
    parser.add_argument("--real-minutes", type=float, default=30.0)
    parser.add_argument("--cancel-after-s", type=float, default=20.0)
    parser.add_argument("--here", action="store_true", help="in this process")
    options = parser.parse_args()
    if options.here:
        (part,) = options.parts
        with tempfile.TemporaryDirectory() as folder:
            facts = {"silent": silent, "spoken": spoken, "real": real}[part](
                Path(folder) / "recording.flac", options
            )
        sys.stdout.write(json.dumps({"part": part, **facts}) + "\n")
        return
    given = [argument for argument in sys.argv[1:] if argument not in PARTS]
    for part in options.parts or PARTS:
        command = [sys.executable, "-m", "tests.load.long_recordings", part, "--here", *given]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
