"""A cache-aware model on ONNX Runtime beside the same model on torch: accuracy and cost of a step.

    python -m tests.load.bench_onnx [MANIFEST] [--model FILE.nemo | --shape 114M]
        [--decoders rnnt ctc] [--batches 1 4 16] [--steps N]

Prints one JSON object. `wer` is over the recordings of MANIFEST (like that of `tests/data/nemo`,
paths beside it; not with `--shape`, whose weights are random) that last at most half a minute, per
latency mode, each followed by silence; `as_torch` counts the recordings with the same tokens in the
same frames. `cpu_ms` is the median CPU time of one 160 ms step, mel frames and decoder included, on
one thread; the networks take turns at each step. Set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch

from asr_engine.audio import FloatSamples, samples_to_ms
from asr_engine.backends.cache_aware.export import export_model
from asr_engine.backends.cache_aware.nemo import CTC, RNNT, NemoNetwork, restore
from asr_engine.backends.cache_aware.network import Network
from asr_engine.backends.cache_aware.onnx import OnnxNetwork
from asr_engine.evaluation import count_errors
from tests.load.machine import load, machine
from tests.load.nemo_shapes import SHAPES, make_model

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "tests" / "data" / "nemo"
TALK = ROOT / "static" / "audio" / "sample.ogg"
LONGEST_MS = 30_000
TAIL_MS = 320
STEP_MODE_MS = 160
WARM_STEPS = 3
BATCH = 16
STAGGER_SAMPLES = 5_000

Heard = list[tuple[int, int]]
"""Frames and labels of a recording."""


def networks(model: Any, decoder: str, slots: int, folder: Path) -> dict[str, Network]:
    """The model on torch and exported, all over the same weights."""
    found: dict[str, Network] = {
        "torch": NemoNetwork(model, decoder=decoder, slots=slots, batch_limit=slots)
    }
    for name, is_int8 in (("onnx fp32", False), ("onnx int8", True)):
        into = folder / decoder / name
        into.mkdir(parents=True)
        export_model(model, into, is_int8=is_int8, decoder=decoder)
        found[name] = OnnxNetwork(into, slots=slots, batch_limit=slots)
    return found


def recordings(manifest: Path) -> Iterator[tuple[FloatSamples, str]]:
    for line in manifest.read_text().splitlines():
        entry = json.loads(line)
        path = manifest.parent / entry["file"]
        samples = soundfile.read(path, dtype="float32")[0]
        if samples_to_ms(len(samples)) <= LONGEST_MS:
            yield samples, entry["text"]


def heard(network: Network, audio: Sequence[FloatSamples], mode_ms: int) -> list[Heard]:
    """What is heard in each recording, BATCH at a time, from the beginning of a stream."""
    size = network.traits.chunk_frames[mode_ms] * network.traits.frame_samples
    found: list[Heard] = []
    for start in range(0, len(audio), BATCH):
        rows = range(len(audio[start : start + BATCH]))
        longest = max(map(len, audio[start : start + BATCH]))
        steps = -(-(longest + TAIL_MS * 16) // size)
        padded = np.stack(
            [np.pad(x, (0, steps * size - len(x))) for x in audio[start:][: len(rows)]]
        )
        said: list[Heard] = [[] for _ in rows]
        for row in rows:
            network.reset(row, language=None)
        for step in range(steps):
            emitted = network.step(rows, padded[:, step * size :][:, :size])
            first = step * network.traits.chunk_frames[mode_ms]
            for row, tokens in zip(said, emitted, strict=True):
                row += [(first + token.frame, token.id) for token in tokens]
        found += said
    return found


def wer(network: Network, found: Sequence[Heard], texts: Sequence[str]) -> float:
    """Word error rate, after the Whisper English normaliser."""
    errors = words = 0
    for said, text in zip(found, texts, strict=True):
        pieces = "".join(network.traits.pieces[label] for _, label in said)
        count = count_errors(text, pieces.replace("▁", " ").strip(), "en")
        errors, words = errors + count.errors, words + len(text.split())
    return round(errors / words, 4)


def accuracy(rivals: Mapping[str, Network], manifest: Path) -> dict[str, Any]:
    audio, texts = zip(*recordings(manifest), strict=True)
    report: dict[str, Any] = {"recordings": len(audio)}
    for mode_ms in rivals["torch"].traits.chunk_frames:
        found = {name: heard(network, audio, mode_ms) for name, network in rivals.items()}
        report[f"{mode_ms} ms"] = {
            "wer": {name: wer(network, found[name], texts) for name, network in rivals.items()},
            "as_torch": {
                name: sum(ours == theirs for ours, theirs in zip(said, found["torch"], strict=True))
                for name, said in found.items()
            },
        }
    return report


def costs(
    rivals: Mapping[str, Network], speech: FloatSamples, batches: Sequence[int], steps: int
) -> dict[str, dict[str, float]]:
    """Median CPU ms of a step, by batch size; each stream hears another place of `speech`."""
    traits = rivals["torch"].traits
    size = traits.chunk_frames[STEP_MODE_MS] * traits.frame_samples
    report = {}
    for batch in batches:
        taken: dict[str, list[float]] = {name: [] for name in rivals}
        rows = range(batch)
        for network in rivals.values():
            for row in rows:
                network.reset(row, language=None)
        for step in range(steps + WARM_STEPS):
            places = [(step * size + row * STAGGER_SAMPLES) % (len(speech) - size) for row in rows]
            chunk = np.stack([speech[place : place + size] for place in places])
            for name, network in rivals.items():
                began = time.process_time()
                network.step(rows, chunk)
                taken[name].append((time.process_time() - began) * 1000)
        report[f"batch {batch}"] = {
            name: round(statistics.median(values[WARM_STEPS:]), 2) for name, values in taken.items()
        }
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("manifest", nargs="?", type=Path, default=DIGITS / "manifest.jsonl")
    parser.add_argument("--model", type=Path, default=DIGITS / "digits.nemo")
    parser.add_argument("--shape", choices=SHAPES)
    parser.add_argument("--decoders", nargs="+", choices=[RNNT, CTC], default=[RNNT, CTC])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 4, 16])
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    torch.set_num_threads(1)
    speech = soundfile.read(TALK, dtype="float32")[0]
    model = make_model(SHAPES[options.shape], speech) if options.shape else None
    model = model or restore(options.model, "cpu")
    report: dict[str, Any] = {
        "machine": machine(),
        "load": load(),
        "model": options.shape or options.model.name,
    }
    decoders = [RNNT] if options.shape else options.decoders
    with tempfile.TemporaryDirectory() as folder:
        for decoder in decoders:
            rivals = networks(model, decoder, max(BATCH, *options.batches), Path(folder))
            report[decoder] = {"cpu_ms": costs(rivals, speech, options.batches, options.steps)}
            if not options.shape:
                report[decoder]["accuracy"] = accuracy(rivals, options.manifest)
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
