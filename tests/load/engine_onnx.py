"""A cache-aware model exported for ONNX Runtime beside the same model on torch, for `bench_engine`:
accuracy on recordings, and the cost of a step.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jiwer
import numpy as np
import soundfile

from asr_engine.audio import FloatSamples, samples_to_ms
from asr_engine.backends.cache_aware.export import export_model
from asr_engine.backends.cache_aware.nemo import CTC, RNNT, NemoNetwork
from asr_engine.backends.cache_aware.network import Network
from asr_engine.backends.cache_aware.onnx import OnnxNetwork
from tests.load.engine_measures import Bench, Subject

LONGEST_MS = 30_000
TAIL_MS = 320
STEP_MODE_MS = 160
WARM_STEPS = 3
STEPS = 60
BATCHES = (1, 4, 16)
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
        path = manifest.parent / (entry.get("file") or entry["audio_filepath"])
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


def word_error_rate(network: Network, found: Sequence[Heard], texts: Sequence[str]) -> float:
    """Of the plain words: the English normaliser would make one number of spoken digits."""
    said = [
        "".join(network.traits.pieces[label] for _, label in item).replace("▁", " ").strip()
        for item in found
    ]
    return float(jiwer.process_words(list(texts), said).wer)


def measure_onnx(bench: Bench, subject: Subject, manifest: Path) -> None:
    """Both decoders of the trained model, the RNNT of one with random weights."""
    is_trained = subject.name == "digits"
    with tempfile.TemporaryDirectory() as folder:
        for decoder in (RNNT, CTC) if is_trained else (RNNT,):
            if bench.left_s <= 0:
                return
            rivals = networks(subject.model, decoder, BATCH, Path(folder))
            for batch, spent in costs(rivals, subject.samples).items():
                bench.tell(
                    "onnx_cost", model=subject.name, decoder=decoder, batch=batch, cpu_ms=spent
                )
            if is_trained:
                for mode_ms, values in accuracy(rivals, manifest):
                    bench.tell("onnx_wer", decoder=decoder, mode_ms=mode_ms, **values)


def accuracy(rivals: Mapping[str, Network], manifest: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """For each mode: how many recordings, the word error rate of each network, and how many
    recordings it hears as torch does, token for token and frame for frame."""
    audio, texts = zip(*recordings(manifest), strict=True)
    for mode_ms in rivals["torch"].traits.chunk_frames:
        found = {name: heard(network, audio, mode_ms) for name, network in rivals.items()}
        yield (
            mode_ms,
            {
                "recordings": len(audio),
                "wer": {
                    name: round(word_error_rate(network, found[name], texts), 4)
                    for name, network in rivals.items()
                },
                "as_torch": {
                    name: sum(
                        ours == theirs for ours, theirs in zip(said, found["torch"], strict=True)
                    )
                    for name, said in found.items()
                },
            },
        )


def costs(rivals: Mapping[str, Network], speech: FloatSamples) -> dict[int, dict[str, float]]:
    """Median CPU ms of a 160 ms step, mel frames and decoder included, by batch size.

    Each stream hears another place of `speech`; the networks take turns at each step.
    """
    traits = rivals["torch"].traits
    size = traits.chunk_frames[STEP_MODE_MS] * traits.frame_samples
    report = {}
    for batch in BATCHES:
        taken: dict[str, list[float]] = {name: [] for name in rivals}
        rows = range(batch)
        for network in rivals.values():
            for row in rows:
                network.reset(row, language=None)
        for step in range(STEPS + WARM_STEPS):
            places = [(step * size + row * STAGGER_SAMPLES) % (len(speech) - size) for row in rows]
            chunk = np.stack([speech[place : place + size] for place in places])
            for name, network in rivals.items():
                began = time.process_time()
                network.step(rows, chunk)
                taken[name].append((time.process_time() - began) * 1000)
        report[batch] = {
            name: round(statistics.median(values[WARM_STEPS:]), 2) for name, values in taken.items()
        }
    return report
