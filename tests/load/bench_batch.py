"""Our draft end to end beside bare faster-whisper: same model, threads, audio and process.

    python -m tests.load.bench_batch FILE… [--language L] [--rounds N]

Prints one JSON object. Both roads start from the file and end with its text and the times of its
words; the rounds alternate, so that a busy machine hurts both alike. `ratio` is ours / theirs by
CPU time (what other processes take does not count), `wall_ratio` by wall time; medians of the
rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asr_engine.backends import silero, whisper_batch
from asr_engine.backends.whisper_models import load_whisper, placement
from asr_engine.batch import two_pass
from asr_engine.batch.two_pass import TwoPassOptions
from asr_engine.config import EngineSettings, engine_settings

THEIR_BATCH = 8


def ours(settings: EngineSettings, language: str) -> Callable[[Path], str]:
    model, finder = whisper_batch.create(settings), silero.create_finder(settings)

    def run(path: Path) -> str:
        options = TwoPassOptions(language=language, is_draft_only=True)
        groups = two_pass.transcribe(path, model=model, finder=finder, options=options)
        return " ".join(segment.text for group in groups for segment in group.segments)

    return run


def theirs(settings: EngineSettings, language: str) -> Callable[[Path], str]:
    from faster_whisper import BatchedInferencePipeline

    pipeline = BatchedInferencePipeline(load_whisper(settings, settings.batch_model))

    def run(path: Path) -> str:
        segments, _ = pipeline.transcribe(
            str(path),
            language=language,
            batch_size=THEIR_BATCH,
            beam_size=1,
            temperature=0.0,
            word_timestamps=True,
            condition_on_previous_text=False,
        )
        return " ".join(segment.text.strip() for segment in segments)

    return run


def timed(run: Callable[[Path], str], path: Path) -> tuple[float, float, str]:
    """Wall seconds, CPU seconds of all threads, text."""
    wall, cpu = time.perf_counter(), time.process_time()
    text = run(path)
    return time.perf_counter() - wall, time.process_time() - cpu, text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--language", default="en")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    settings = engine_settings()
    roads = {"ours": ours(settings, options.language), "theirs": theirs(settings, options.language)}
    place = placement(settings)
    report: dict[str, Any] = {
        "model": settings.batch_model,
        "device": place.device,
        "compute_type": place.compute_type,
        "threads": place.threads,
        "files": [],
    }
    for path in options.files:
        walls: dict[str, list[float]] = {name: [] for name in roads}
        cpus: dict[str, list[float]] = {name: [] for name in roads}
        texts = {}
        for turn in range(options.rounds):
            order = list(roads.items()) if turn % 2 else list(roads.items())[::-1]
            for name, run in order:
                wall, cpu, texts[name] = timed(run, path)
                walls[name].append(wall)
                cpus[name].append(cpu)
        wall_s = {name: statistics.median(values) for name, values in walls.items()}
        cpu_s = {name: statistics.median(values) for name, values in cpus.items()}
        report["files"].append(
            {
                "file": path.name,
                "wall_s": {name: round(value, 2) for name, value in wall_s.items()},
                "cpu_s": {name: round(value, 2) for name, value in cpu_s.items()},
                "words": {name: len(text.split()) for name, text in texts.items()},
                "ratio": round(cpu_s["ours"] / cpu_s["theirs"], 3),
                "wall_ratio": round(wall_s["ours"] / wall_s["theirs"], 3),
            }
        )
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
