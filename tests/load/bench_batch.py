"""Both passes end to end beside bare faster-whisper: same weights, threads, audio and process.

    python -m tests.load.bench_batch FILE… [--language L] [--rounds N]
    python -m tests.load.bench_batch --manifest M [--folder F]… [--limit N] [--rounds N]
        [--babble FOLDER]… [--babble-db 5]

Every road starts from the file and ends with its text and the times of its words; the rounds take
turns, so that a busy machine hurts all alike. `ours` is one run of both passes: `draft` is what its
drafts take, `refined` what comes on top. `theirs` decodes greedily, `beam` by a beam of 5
everywhere. Times are medians of the rounds: CPU time of all threads (what other processes take does
not count), and wall time. `--babble` adds a folder once more, with six others talking behind each
recording.

Prints one JSON object with the files and, over a manifest, its folders: `draft_ratio` is our draft
by theirs in CPU time, `refine_share` what the refine pass adds to our draft, and error rates are
WER or CER as `manage.py evaluate` counts them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asr_engine.backends import silero
from asr_engine.backends.whisper_batch import WhisperBatchModel
from asr_engine.backends.whisper_models import load_whisper, placement
from asr_engine.batch import two_pass
from asr_engine.batch.two_pass import Pass, TwoPassOptions
from asr_engine.config import EngineSettings, engine_settings
from asr_engine.evaluation import Entry, count_errors, is_scored_by_characters, read_manifest
from tests.load.babble import in_babble

THEIR_BATCH = 8
TEXTS = ("draft", "refined", "theirs", "beam")


@dataclass(slots=True)
class Run:
    """Seconds of wall and CPU time, and what they yielded; `draft` and `refined`, or one text."""

    wall_s: dict[str, float]
    cpu_s: dict[str, float]
    texts: dict[str, str]


@dataclass(slots=True)
class Measured:
    """The rounds of one file."""

    entry: Entry
    runs: list[Run] = field(default_factory=list)

    def median(self, of: str, name: str) -> float:
        seconds = [run.cpu_s if of == "cpu_s" else run.wall_s for run in self.runs]
        return statistics.median(one[name] for one in seconds)

    @property
    def texts(self) -> dict[str, str]:
        return self.runs[-1].texts

    def as_json(self) -> dict[str, Any]:
        cpu = {name: self.median("cpu_s", name) for name in self.runs[0].cpu_s}
        wall = {name: self.median("wall_s", name) for name in self.runs[0].wall_s}
        return {
            "file": self.entry.file,
            "wall_s": {name: round(value, 2) for name, value in wall.items()},
            "cpu_s": {name: round(value, 2) for name, value in cpu.items()},
            "words": {name: len(text.split()) for name, text in self.texts.items()},
            "draft_ratio": round(cpu["draft"] / cpu["theirs"], 3),
            "draft_wall_ratio": round(wall["draft"] / wall["theirs"], 3),
            "refine_share": round(cpu["refined"] / cpu["draft"], 3),
        }


class Roads:
    """The roads over one set of weights."""

    def __init__(self, settings: EngineSettings) -> None:
        from faster_whisper import BatchedInferencePipeline

        weights = load_whisper(settings, settings.batch_model)
        self._model = WhisperBatchModel(
            weights, settings.batch_model, refine_share=settings.refine_share
        )
        self._finder = silero.create_finder(settings)
        self._pipeline = BatchedInferencePipeline(weights)

    def run(self, path: Path, language: str, *, turn: int) -> Run:
        """All roads once; who goes first changes with `turn`."""
        run = Run({}, {}, {})
        roads: list[Callable[[Run, Path, str], None]] = [self._ours, self._greedy, self._beam]
        for road in roads[turn % 3 :] + roads[: turn % 3]:
            road(run, path, language)
        return run

    def _ours(self, run: Run, path: Path, language: str) -> None:
        texts: dict[str, list[str]] = {"draft": [], "refined": []}
        run.wall_s |= dict.fromkeys(texts, 0.0)
        run.cpu_s |= dict.fromkeys(texts, 0.0)
        groups = two_pass.transcribe(
            path, model=self._model, finder=self._finder, options=TwoPassOptions(language=language)
        )
        wall, cpu = time.perf_counter(), time.process_time()
        for group in groups:
            name = "draft" if group.pass_ is Pass.DRAFT else "refined"
            run.wall_s[name] += time.perf_counter() - wall
            run.cpu_s[name] += time.process_time() - cpu
            texts[name] += [segment.text for segment in group.segments]
            wall, cpu = time.perf_counter(), time.process_time()
        run.texts |= {name: " ".join(parts) for name, parts in texts.items()}

    def _greedy(self, run: Run, path: Path, language: str) -> None:
        self._bare(run, path, language, "theirs", 1)

    def _beam(self, run: Run, path: Path, language: str) -> None:
        self._bare(run, path, language, "beam", 5)

    def _bare(self, run: Run, path: Path, language: str, name: str, beam: int) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        segments, _ = self._pipeline.transcribe(
            str(path),
            language=language,
            batch_size=THEIR_BATCH,
            beam_size=beam,
            temperature=0.0,
            word_timestamps=True,
            condition_on_previous_text=False,
        )
        run.texts[name] = " ".join(segment.text.strip() for segment in segments)
        run.wall_s[name] = time.perf_counter() - wall
        run.cpu_s[name] = time.process_time() - cpu


def over_folder(files: Sequence[Measured]) -> dict[str, Any]:
    """Sums over a folder's files, by the minute of audio; rates by words or by characters."""
    audio_s = sum(one.entry.seconds for one in files)
    cpu = {name: sum(one.median("cpu_s", name) for one in files) for name in files[0].runs[0].cpu_s}
    rates = {}
    for metric in ("wer", "cer"):
        scored = [
            one
            for one in files
            if one.entry.text and is_scored_by_characters(one.entry.language) is (metric == "cer")
        ]
        if scored:
            rates[metric] = {name: rate_of(scored, name) for name in TEXTS}
    return {
        "files": len(files),
        "audio_s": round(audio_s, 1),
        "cpu_s_per_minute": {name: round(60 * value / audio_s, 2) for name, value in cpu.items()},
        "draft_ratio": round(cpu["draft"] / cpu["theirs"], 3),
        "refine_share": round(cpu["refined"] / cpu["draft"], 3),
        **rates,
    }


def rate_of(files: Iterable[Measured], name: str) -> float:
    counts = [
        count_errors(one.entry.text or "", one.texts[name], one.entry.language) for one in files
    ]
    return round(sum(count.errors for count in counts) / sum(count.units for count in counts), 4)


def entries_of(options: argparse.Namespace, folder: Path) -> list[Entry]:
    """What is to be heard; what is made for it goes to `folder`."""
    if options.manifest is None:
        return [
            Entry(path.name, path, None, options.language, 0.0, "", is_scored=False)
            for path in options.files
        ]
    chosen: dict[str, list[Entry]] = {}
    for entry in read_manifest(options.manifest):
        # Where languages mix, bare faster-whisper has no like.
        if entry.is_scored and entry.text and entry.language not in {None, "mul"}:
            chosen.setdefault(entry.folder, []).append(entry)
    heard = [
        entry
        for name, entries in chosen.items()
        if not options.folder or name in options.folder
        for entry in entries[: options.limit or None]
    ]
    for name in options.babble:
        heard += in_babble(chosen[name], options.babble_db, folder)
    return heard


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--language", default="en", help="of the files")
    parser.add_argument("--manifest", type=Path)
    parser.add_argument("--folder", action="append", help="of the manifest; all by default")
    parser.add_argument("--limit", type=int, default=0, help="files of each folder; 0 is all")
    parser.add_argument("--babble", action="append", default=[], metavar="FOLDER")
    parser.add_argument("--babble-db", type=float, default=5.0, help="of speech over babble")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(options, Path(folder))


def measure(options: argparse.Namespace, folder: Path) -> None:
    settings = engine_settings()
    roads, place = Roads(settings), placement(settings)
    files: list[Measured] = []
    for entry in entries_of(options, folder):
        measured = Measured(entry)
        for turn in range(options.rounds):
            measured.runs.append(roads.run(entry.path, entry.language or "en", turn=turn))
        files.append(measured)
        sys.stderr.write(f"{entry.file}\n")
    report: dict[str, Any] = {
        "model": settings.batch_model,
        "device": place.device,
        "compute_type": place.compute_type,
        "threads": place.threads,
        "rounds": options.rounds,
        "files": [one.as_json() for one in files],
    }
    if options.manifest:
        folders = dict.fromkeys(one.entry.folder for one in files)
        report["folders"] = {
            name: over_folder([one for one in files if one.entry.folder == name])
            for name in folders
        }
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
