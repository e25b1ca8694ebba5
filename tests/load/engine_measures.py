"""What `bench_engine` measures of one model; each result is told as soon as it is had."""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.backends import silero
from asr_engine.backends.cache_aware.nemo import NemoNetwork
from asr_engine.config import engine_settings
from asr_engine.ports import VoiceActivityDetector
from tests.load.engine_roads import Ours, SpeechAlways, Talk, Theirs

MODE_MS = 160
FRAME_MS = 80
WARM_ROUNDS = 3
THEIRS = "NeMo's pipeline"
GRAPHS = "NeMo's pipeline with CUDA graphs"
PAIR_TURNS = 6
TURN_ROUNDS = 40
FINALS_S = 10.0
BUSY_SHARE = 0.9
"""Of a chunk's duration, what a round may take of it in real time at the 95th percentile."""
CAPACITY_TRIES = 5
CAPACITY_ROUNDS = 12
CAPACITY_S = 2.0
SOAK_PART_S = 300
ABANDONED = 500
ABANDONED_ROUNDS = 6


@dataclass
class Bench:
    """Where it runs, how long it may, and where results go."""

    device: str
    dtype: str
    budget_s: float
    lines: Path | None
    turn_s: float = 1.5
    has_graphs: bool = False
    results: list[dict[str, Any]] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    @property
    def is_gpu(self) -> bool:
        return self.device == "cuda"

    @property
    def left_s(self) -> float:
        return self.budget_s - (time.monotonic() - self.started)

    def now(self) -> float:
        return time.perf_counter() if self.is_gpu else time.process_time()

    def tell(self, kind: str, **values: Any) -> None:
        result = {"kind": kind, **values}
        self.results.append(result)
        line = json.dumps(result)
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
        if self.lines is not None:
            with self.lines.open("a") as file:
                file.write(line + "\n")


@dataclass(frozen=True)
class Subject:
    """A model that is measured, and the talk that it hears."""

    name: str
    model: Any
    samples: FloatSamples

    def network(self, bench: Bench, *, slots: int, batch_limit: int) -> NemoNetwork:
        return NemoNetwork(
            self.model,
            device=bench.device,
            dtype=bench.dtype,
            slots=slots,
            batch_limit=batch_limit,
        )


# What a step costs -------------------------------------------------------------------------------


def measure_steps(bench: Bench, subject: Subject, sizes: list[int], modes: list[int]) -> None:
    """The network alone: milliseconds of one step against its batch."""
    network = subject.network(bench, slots=max(sizes), batch_limit=max(sizes))
    for mode_ms in modes:
        frames = network.traits.chunk_frames[mode_ms]
        for size in sizes:
            if bench.left_s <= 0:
                return
            talk = Talk(subject.samples, size, frames * network.traits.frame_samples)
            slots = list(range(size))
            for slot in slots:
                network.reset(slot, language=None)
            spent, tokens = [], 0
            until = time.monotonic() + bench.turn_s
            for turn in range(200):
                chunks = talk.next()
                begun = bench.now()
                said = network.step(slots, chunks)
                if turn >= WARM_ROUNDS:
                    spent.append(bench.now() - begun)
                    tokens += sum(map(len, said))
                if time.monotonic() > until and len(spent) >= WARM_ROUNDS:
                    break
            step_s = statistics.median(spent)
            bench.tell(
                "step",
                model=subject.name,
                mode_ms=mode_ms,
                batch=size,
                step_ms=round(step_s * 1000, 2),
                streams=round(size * mode_ms / 1000 / step_s, 1),
                tokens_per_frame=round(tokens / len(spent) / size / frames, 2),
            )


# Ours beside NeMo's pipeline ---------------------------------------------------------------------


def measure_pairs(bench: Bench, subject: Subject, sizes: list[int]) -> None:
    """Audio heard in a second of work. The roads take turns; a ratio is the median of the turns'
    pairs."""
    for size in sizes:
        if bench.left_s <= 0:
            return
        roads = _roads(bench, subject, size)
        chunk_samples = MODE_MS * SAMPLE_RATE // 1000
        # Each road hears the whole talk, so that all have had the same audio after each turn.
        talks = {name: Talk(subject.samples, size, chunk_samples) for name in roads}
        for name in list(roads):
            try:
                begun = bench.now()
                _hear(roads[name], talks[name], WARM_ROUNDS)
                begun = bench.now()
                _hear(roads[name], talks[name], WARM_ROUNDS)
                round_s = (bench.now() - begun) / WARM_ROUNDS
            except Exception as error:
                if name != GRAPHS:
                    raise
                bench.tell("note", text=f"{name}: {type(error).__name__}")
                del roads[name]
        rounds = max(1, min(TURN_ROUNDS, round(bench.turn_s / round_s)))
        spent: dict[str, list[float]] = {name: [] for name in roads}
        for turn in range(PAIR_TURNS):
            for name in list(roads) if turn % 2 else list(roads)[::-1]:
                begun = bench.now()
                _hear(roads[name], talks[name], rounds)
                spent[name].append((bench.now() - begun) / rounds)
            if bench.left_s <= 0:
                break
        for name, times in spent.items():
            if name == THEIRS:
                continue
            pairs = zip(spent[THEIRS], times, strict=True)
            bench.tell(
                "pair",
                model=subject.name,
                mode_ms=MODE_MS,
                streams=size,
                road=name,
                audio_s=round(size * MODE_MS / 1000 / statistics.median(times), 2),
                their_audio_s=round(size * MODE_MS / 1000 / statistics.median(spent[THEIRS]), 2),
                ratio=round(statistics.median(theirs / own for theirs, own in pairs), 3),
                turns=len(times),
                rounds=rounds,
            )


def _roads(bench: Bench, subject: Subject, size: int) -> dict[str, Ours | Theirs]:
    def ours(detector: VoiceActivityDetector) -> Ours:
        network = subject.network(bench, slots=size, batch_limit=size)
        return Ours(network, detector, mode_ms=MODE_MS, streams=size)

    def theirs(*, has_graphs: bool) -> Theirs:
        return Theirs(
            subject.model,
            right_frames=MODE_MS // FRAME_MS - 1,
            streams=size,
            device=bench.device,
            has_graphs=has_graphs,
        )

    roads: dict[str, Ours | Theirs] = {
        "engine": ours(SpeechAlways()),
        "engine, Silero": ours(silero.create(engine_settings())),
        THEIRS: theirs(has_graphs=False),
    }
    if bench.has_graphs:
        try:
            roads[GRAPHS] = theirs(has_graphs=True)
        except Exception as error:  # noqa: BLE001 -- whether graphs can be had hangs on the driver
            bench.tell("note", text=f"{GRAPHS}: {type(error).__name__}")
    return roads


def _hear(road: Ours | Theirs, talk: Talk, rounds: int) -> None:
    for _round in range(rounds):
        road.round(talk.next())


# How many streams in real time -------------------------------------------------------------------


def measure_capacity(
    bench: Bench, subject: Subject, modes: list[int], batch_limit: int, *, has_detector: bool
) -> None:
    """The most streams whose round ends within BUSY_SHARE of a chunk's duration, 19 of 20 times."""
    count = 32 if bench.is_gpu else 1
    for mode_ms in modes:
        limit_s = BUSY_SHARE * mode_ms / 1000
        passed, failed = 0, sys.maxsize
        for _try in range(CAPACITY_TRIES):
            if bench.left_s <= 0:
                return
            detector: VoiceActivityDetector = SpeechAlways()
            if has_detector:
                detector = silero.create(engine_settings())
            spent = _round_times(bench, subject, detector, mode_ms, count, batch_limit)
            p95_s = float(np.percentile(spent, 95))
            bench.tell(
                "capacity" if has_detector else "ceiling",
                model=subject.name,
                mode_ms=mode_ms,
                streams=count,
                round_ms=round(statistics.median(spent) * 1000, 1),
                round_p95_ms=round(p95_s * 1000, 1),
                rounds=len(spent),
                is_in_time=p95_s <= limit_s,
                memory_mib=memory_mib(bench),
            )
            if p95_s <= limit_s:
                passed = count
            else:
                failed = count
            # A round grows about in proportion to its streams, or less.
            guess = min(round(0.97 * count * limit_s / p95_s), 8 * count)
            count = min(max(guess, passed + 1), failed - 1)
            if count <= passed or abs(count - passed) <= passed // 20:
                break
        # A longer chunk carries more streams.
        count = max(passed, 1)


def _round_times(
    bench: Bench,
    subject: Subject,
    detector: VoiceActivityDetector,
    mode_ms: int,
    streams: int,
    batch_limit: int,
) -> list[float]:
    """Wall seconds of successive rounds of `streams`; few when far too slow."""
    gc.collect()  # the network before, with its caches
    if bench.is_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    network = subject.network(bench, slots=streams, batch_limit=batch_limit)
    ours = Ours(network, detector, mode_ms=mode_ms, streams=streams)
    talk = Talk(subject.samples, streams, mode_ms * SAMPLE_RATE // 1000)
    _hear(ours, talk, WARM_ROUNDS)
    spent: list[float] = []
    until = time.monotonic() + CAPACITY_S
    while len(spent) < CAPACITY_ROUNDS or time.monotonic() < until:
        chunks = talk.next()
        begun = time.perf_counter()
        ours.round(chunks)
        spent.append(time.perf_counter() - begun)
        if len(spent) == WARM_ROUNDS and min(spent) > mode_ms / 1000:
            break
    return spent


# How long a final takes --------------------------------------------------------------------------


def measure_finals(bench: Bench, subject: Subject, counts: list[int], batch_limit: int) -> None:
    """From the endpoint decision to the Final event, rounds one after the other."""
    for streams in counts:
        if bench.left_s <= 0:
            return
        network = subject.network(bench, slots=streams, batch_limit=batch_limit)
        ours = Ours(network, silero.create(engine_settings()), mode_ms=MODE_MS, streams=streams)
        talk = Talk(subject.samples, streams, MODE_MS * SAMPLE_RATE // 1000)
        until = time.monotonic() + min(FINALS_S, bench.left_s)
        while len(ours.delays_s) < max(20, 2 * streams) and time.monotonic() < until:
            ours.round(talk.next())
        if ours.delays_s:
            bench.tell(
                "final",
                model=subject.name,
                mode_ms=MODE_MS,
                streams=streams,
                finals=len(ours.delays_s),
                p50_ms=round(statistics.median(ours.delays_s) * 1000, 2),
                p95_ms=round(float(np.percentile(ours.delays_s, 95)) * 1000, 2),
            )


# Hours ------------------------------------------------------------------------------------------


def measure_soak(bench: Bench, subject: Subject, minutes: int) -> None:
    """One stream for an hour, then streams that are opened, spoken to and abandoned."""
    chunk_samples = MODE_MS * SAMPLE_RATE // 1000
    network = subject.network(bench, slots=4, batch_limit=4)
    ours = Ours(network, silero.create(engine_settings()), mode_ms=MODE_MS, streams=1)
    talk = Talk(subject.samples, 1, chunk_samples)
    part_rounds = SOAK_PART_S * 1000 // MODE_MS
    for part in range(minutes * 60 // SOAK_PART_S):
        begun = time.process_time()
        _hear(ours, talk, part_rounds)
        spent_s = time.process_time() - begun
        bench.tell(
            "soak",
            model=subject.name,
            mode_ms=MODE_MS,
            minute=(part + 1) * SOAK_PART_S // 60,
            cpu_s_per_audio_s=round(spent_s / SOAK_PART_S, 4),
            memory_mib=memory_mib(bench),
            finals=ours.finals,
        )
    ours.close()
    for number in range(ABANDONED):
        left = Ours(network, silero.create(engine_settings()), mode_ms=MODE_MS, streams=2)
        _hear(left, Talk(subject.samples, 2, chunk_samples), ABANDONED_ROUNDS)
        left.close()
        if (number + 1) % (ABANDONED // 5) == 0:
            bench.tell("abandoned", streams=2 * (number + 1), memory_mib=memory_mib(bench))


def memory_mib(bench: Bench) -> int:
    """What the process holds now; on a GPU the peak of what torch took there."""
    if bench.is_gpu:
        return torch.cuda.max_memory_allocated() // 2**20
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20
