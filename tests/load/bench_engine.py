"""`make bench-engine`: what the streaming engine makes of this machine with NeMo models.

    python -m tests.load.bench_engine [--device cuda --dtype bfloat16] [--shapes digits 114M 0.6B]
        [--parts pairs capacity finals ceiling steps delays onnx soak] [--budget SECONDS]
        [--lines FILE] [--page FILE]
    python -m tests.load.bench_engine --render FILE… [--page FILE]

Results come one JSON object a line as they are measured, so that a run that is cut short has said
what it found; `--render` makes the page of such files, of several machines if need be. The `digits`
model is the trained fixture; the others have random weights and the shape of large models
(`nemo_shapes.py`). On a CPU the measure is the process's own CPU time on one thread, on a GPU the
wall clock.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import soundfile
import torch

from asr_engine.backends.cache_aware.nemo import restore
from tests.load.engine_delays import measure_delays
from tests.load.engine_measures import (
    FRAME_MS,
    Bench,
    Subject,
    measure_capacity,
    measure_finals,
    measure_pairs,
    measure_soak,
    measure_steps,
)
from tests.load.engine_onnx import measure_onnx
from tests.load.engine_page import page
from tests.load.machine import load, machine
from tests.load.nemo_shapes import SHAPES, make_model

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks-engine.md"
DIGITS = ROOT / "tests" / "data" / "nemo"
TALK = ROOT / "static" / "audio" / "sample.ogg"
PARTS = ("pairs", "capacity", "finals", "ceiling", "steps", "delays", "onnx", "soak")
"""In the order in which they are measured unless another is asked for."""


def subjects(bench: Bench, names: Iterable[str]) -> Iterator[Subject]:
    talk, _rate = soundfile.read(TALK, dtype="float32")
    for name in names:
        started = time.monotonic()
        if name == "digits":
            # Not its digits: Silero hears some of them as noise, and finals would be few.
            subject = Subject(name, restore(DIGITS / "digits.nemo", bench.device), talk)
        else:
            subject = Subject(name, make_model(SHAPES[name], talk, device=bench.device), talk)
        weights = sum(part.numel() for part in subject.model.parameters())
        seconds = round(time.monotonic() - started, 1)
        bench.tell("model", model=name, million=round(weights / 1e6, 1), made_in_s=seconds)
        yield subject


def measure(bench: Bench, options: argparse.Namespace) -> None:
    """Every part of every model, as far as the budget goes."""
    parts: dict[str, Callable[[Subject], None]] = {
        "pairs": lambda subject: measure_pairs(bench, subject, options.pair_streams),
        "capacity": lambda subject: measure_capacity(
            bench,
            subject,
            _modes(subject, options.modes),
            options.batch_limit,
            has_detector=True,
        ),
        "ceiling": lambda subject: measure_capacity(
            bench,
            subject,
            _modes(subject, options.modes),
            options.batch_limit,
            has_detector=False,
        ),
        "finals": lambda subject: measure_finals(
            bench, subject, options.final_streams, options.batch_limit
        ),
        "steps": lambda subject: measure_steps(
            bench, subject, options.batches, _modes(subject, options.modes)
        ),
        "delays": lambda subject: measure_delays(bench, subject, _modes(subject, options.modes)),
        "onnx": lambda subject: measure_onnx(bench, subject, options.manifest),
        "soak": lambda subject: measure_soak(bench, subject, options.soak_minutes),
    }
    bench.tell("machine", **about(bench))
    for subject in subjects(bench, options.shapes):
        for name in options.parts:
            if bench.left_s > 0:
                parts[name](subject)
    bench.tell("end", seconds=round(time.monotonic() - bench.started), load=load())


def _modes(subject: Subject, wanted: list[int]) -> list[int]:
    frames = [context[1] + 1 for context in subject.model.encoder.att_context_size_all]
    return [mode for mode in wanted if mode // FRAME_MS in frames]


def about(bench: Bench) -> dict[str, Any]:
    return {
        "machine": machine(),
        "gpu": torch.cuda.get_device_name() if bench.is_gpu else None,
        "dtype": bench.dtype,
        "when": f"{datetime.now(UTC):%Y-%m-%d}",
        "load": load(),
        "python": platform.python_version(),
        "torch": version("torch"),
        "nemo": version("nemo_toolkit"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--shapes", nargs="+", default=["digits"])
    parser.add_argument(
        "--parts",
        nargs="+",
        default=("pairs", "finals", "delays", "steps", "onnx", "capacity"),
        choices=PARTS,
    )
    parser.add_argument("--modes", type=int, nargs="+", default=[80, 160, 560, 1120])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 4, 8, 16, 32, 64])
    parser.add_argument("--pair-streams", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--graphs", action="store_true", help="pair with NeMo's CUDA graphs too")
    parser.add_argument("--final-streams", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--batch-limit", type=int, default=64)
    parser.add_argument(
        "--manifest", type=Path, default=DIGITS / "manifest.jsonl", help="spoken digits, for onnx"
    )
    parser.add_argument("--soak-minutes", type=int, default=60)
    parser.add_argument("--budget", type=float, default=360, help="seconds, about")
    parser.add_argument("--turn", type=float, default=1.5, help="seconds of one measurement")
    parser.add_argument("--lines", type=Path, help="file that results are added to")
    parser.add_argument("--page", type=Path, help="Markdown to write of the results")
    parser.add_argument("--render", type=Path, nargs="+", help="only write the page of these")
    options = parser.parse_args()
    if options.render:
        runs = [
            [json.loads(line) for line in file.read_text().splitlines()] for file in options.render
        ]
    else:
        torch.set_num_threads(1)
        bench = Bench(
            options.device,
            options.dtype,
            options.budget,
            options.lines,
            options.turn,
            options.graphs,
        )
        measure(bench, options)
        runs = [bench.results]
    if options.page:
        options.page.write_text(page(runs))


if __name__ == "__main__":
    main()
