"""Delays of one stream, for `bench_engine`: to the first partial, to the final, and of finals of
long utterances.

The audio clock is simulated as in `manage.py evaluate --live`: packets come when they would have
been spoken, a step takes the time that it takes, and waiting is skipped.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.backends import silero
from asr_engine.backends.cache_aware.model import CacheAwareModel
from asr_engine.backends.cache_aware.network import Network
from asr_engine.config import engine_settings
from asr_engine.endpointing import EndpointRules
from asr_engine.events import Final, Partial, StreamEvent
from asr_engine.ports import Chunk, VoiceActivityDetector
from asr_engine.streaming import Engine
from tests.fakes.digits import Digits, digits
from tests.load.engine_measures import Bench, Subject
from transcription.runners.evaluate_live import SimulatedClock

STREAM = "delays"
LONGEST_PACKET_MS = 200
LENGTHS_S = (3, 15, 60)
UTTERANCES = 4
PAUSE_S = 2
NO_LENGTH_RULE = EndpointRules(max_utterance_ms=10 * 60_000)


def measure_delays(bench: Bench, subject: Subject, modes: Sequence[int]) -> None:
    """One stream in each mode: to the first partial and the final where the model knows the words,
    and the finals of utterances of each length."""
    network = subject.network(bench, slots=1, batch_limit=1)
    detector = silero.create(engine_settings())
    for mode_ms in modes:
        if bench.left_s <= 0:
            return
        if subject.name == "digits":
            said = [*digits("seen"), *digits("heldout")]
            bench.tell("delay", mode_ms=mode_ms, **delays(network, detector, said, mode_ms))
        for seconds, p50_ms, longest_ms in finalisation(network, subject.samples, mode_ms):
            bench.tell(
                "length",
                model=subject.name,
                mode_ms=mode_ms,
                seconds=seconds,
                p50_ms=p50_ms,
                longest_ms=longest_ms,
            )


@dataclass(frozen=True)
class SpokenBy:
    """A detector that knows: each utterance is `speech_s` long and a pause follows it."""

    speech_s: int
    window_samples: int = 512

    def open(self, stream: str) -> None:
        pass

    def detect(self, windows: Sequence[Chunk]) -> list[float]:
        period = (self.speech_s + PAUSE_S) * SAMPLE_RATE
        return [
            float(window.start_sample % period < self.speech_s * SAMPLE_RATE) for window in windows
        ]

    def close(self, stream: str) -> None:
        pass


def played(
    engine: Engine, clock: SimulatedClock, samples: FloatSamples, mode_ms: int
) -> Iterator[tuple[float, StreamEvent]]:
    """Events with the time at which they came, in seconds after the audio's beginning."""
    size = min(mode_ms, LONGEST_PACKET_MS) * SAMPLE_RATE // 1000
    engine.open_stream(STREAM, mode_ms=mode_ms)
    clock.start()
    for start in range(0, len(samples), size):
        packet = samples[start : start + size]
        clock.wait_until((start + len(packet)) / SAMPLE_RATE)
        engine.accept_audio(STREAM, start, packet)
        while engine.step():
            yield from ((clock.now(), event) for event in engine.take_events())
    engine.end_audio(STREAM)
    while engine.step():
        yield from ((clock.now(), event) for event in engine.take_events())
    engine.close_stream(STREAM)


def delays(
    network: Network, detector: VoiceActivityDetector, recordings: Sequence[Digits], mode_ms: int
) -> dict[str, float | int]:
    """Milliseconds from the first word's true beginning to the first partial, and from the last
    word's true end to the final (the rule of 600 ms of silence in it)."""
    clock = SimulatedClock()
    engine = Engine(CacheAwareModel(network, name="bench"), detector, clock=clock)
    firsts, finals = [], []
    silence = np.random.default_rng(3).normal(0, 0.001, SAMPLE_RATE).astype(np.float32)
    for item in recordings:
        first = final = None
        audio = np.concatenate([item.samples(), silence])
        for now, event in played(engine, clock, audio, mode_ms):
            if isinstance(event, Partial) and first is None:
                first = now
            elif isinstance(event, Final):
                final = now
        if first is not None and final is not None:
            firsts.append(first - item.word_times[0][0])
            finals.append(final - item.word_times[-1][1])
    return {
        "recordings": len(firsts),
        "first_p50_ms": round(statistics.median(firsts) * 1000),
        "first_p95_ms": round(float(np.percentile(firsts, 95)) * 1000),
        "final_p50_ms": round(statistics.median(finals) * 1000),
        "final_p95_ms": round(float(np.percentile(finals, 95)) * 1000),
    }


def finalisation(
    network: Network, speech: FloatSamples, mode_ms: int
) -> Iterator[tuple[int, float, float]]:
    """(seconds, p50 ms, largest ms) from the endpoint decision to the final, for utterances of
    each length."""
    for seconds in LENGTHS_S:
        clock = SimulatedClock()
        engine = Engine(
            CacheAwareModel(network, name="bench"), SpokenBy(seconds), NO_LENGTH_RULE, clock
        )
        one = np.resize(speech, seconds * SAMPLE_RATE)
        pause = np.random.default_rng(4).normal(0, 0.001, PAUSE_S * SAMPLE_RATE)
        audio = np.tile(np.concatenate([one, pause]).astype(np.float32), UTTERANCES)
        spent = [
            (now - event.decided_at_s) * 1000
            for now, event in played(engine, clock, audio, mode_ms)
            if isinstance(event, Final)
        ]
        yield seconds, round(statistics.median(spent), 2), round(max(spent), 2)
