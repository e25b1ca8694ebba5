"""Live evaluation: one recording through the streaming engine as if it were spoken now.

The audio clock is simulated: packets arrive when they would have been spoken, a model step takes
the time that it really took, and idle time is skipped. Delays are those of a live session with one
stream on an otherwise idle machine, without sockets and broker; the run is as fast as the model.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from asr_engine import events, registry
from asr_engine.audio import SAMPLE_RATE, FloatSamples, ms_to_samples, samples_to_ms
from asr_engine.batch.decode import decode_audio
from asr_engine.config import EngineSettings
from asr_engine.errors import EngineError
from asr_engine.events import Ended, Failed, Partial, StreamEvent
from asr_engine.ports import StreamingModel, VoiceActivityDetector
from asr_engine.results import Segment
from asr_engine.streaming.engine import Engine

STREAM: Final = "evaluation"
LONGEST_PACKET_MS: Final = 200


@dataclass(frozen=True, slots=True)
class LiveResult:
    """What a live session would have shown.

    `first_partial_ms` is first speech sample spoken → first partial; `final_delays_ms` true end of
    speech → final, one per utterance, the silence rule included; `finalisation_delays_ms` endpoint
    decision → final. `rtf` is processing time / audio time.
    """

    text: str
    segments: tuple[Segment, ...]
    audio_ms: int
    rtf: float
    first_partial_ms: int | None
    final_delays_ms: tuple[int, ...]
    finalisation_delays_ms: tuple[int, ...]
    language: str | None


class SimulatedClock:
    """Runs with the machine while the engine works, and jumps to the next packet when it waits."""

    def __init__(self) -> None:
        self._skipped_s = 0.0

    def start(self) -> None:
        """Zero is now."""
        self._skipped_s = -time.monotonic()

    def now(self) -> float:
        return time.monotonic() + self._skipped_s

    def wait_until(self, moment_s: float) -> None:
        self._skipped_s += max(0.0, moment_s - self.now())


@dataclass(slots=True)
class _Notes:
    """What is kept of the events of a run."""

    segments: list[Segment] = field(default_factory=list)
    first_partial_s: float | None = None
    final_delays_ms: list[int] = field(default_factory=list)
    finalisation_delays_ms: list[int] = field(default_factory=list)
    is_ended: bool = False

    def take(self, event: StreamEvent, now: float) -> None:
        if isinstance(event, Partial | events.Final) and self.first_partial_s is None:
            self.first_partial_s = now - event.start_ms / 1000
        if isinstance(event, events.Final):
            self.final_delays_ms.append(round(now * 1000 - event.speech_end_ms))
            self.finalisation_delays_ms.append(round((now - event.decided_at_s) * 1000))
            self.segments.append(
                Segment(event.start_ms, event.end_ms, event.text, event.words, event.language)
            )
        elif isinstance(event, Failed):
            raise EngineError("the streaming model failed")
        elif isinstance(event, Ended):
            self.is_ended = True


def transcribe_live(
    path: Path, *, language: str | None, settings: EngineSettings, mode_ms: int = 0
) -> LiveResult:
    """Stream one recording in packets of 200 ms, or of the latency mode's chunk if that is shorter.

    `mode_ms` 0 is the model's default. Raises AudioError where it cannot be decoded, ModelError
    where no model is present, UnsupportedLanguageError, UnsupportedModeError.
    """
    model, detector = _models(settings)
    clock = SimulatedClock()
    engine = Engine(model, detector, clock=clock)
    mode_ms = engine.open_stream(STREAM, language=language, mode_ms=mode_ms)
    packet_samples = ms_to_samples(min(mode_ms, LONGEST_PACKET_MS))
    notes, busy_s, samples = _Notes(), 0.0, 0
    try:
        clock.start()
        for packet in _packets(decode_audio(path), packet_samples):
            samples += len(packet)
            clock.wait_until(samples / SAMPLE_RATE)
            engine.accept_audio(STREAM, samples - len(packet), packet)
            busy_s += _work(engine, clock, notes)
        engine.end_audio(STREAM)
        busy_s += _work(engine, clock, notes)
    finally:
        engine.close_stream(STREAM)
    return LiveResult(
        text=" ".join(segment.text for segment in notes.segments),
        segments=tuple(notes.segments),
        audio_ms=samples_to_ms(samples),
        rtf=busy_s * SAMPLE_RATE / samples if samples else 0.0,
        first_partial_ms=(
            None if notes.first_partial_s is None else round(notes.first_partial_s * 1000)
        ),
        final_delays_ms=tuple(notes.final_delays_ms),
        finalisation_delays_ms=tuple(notes.finalisation_delays_ms),
        language=notes.segments[-1].language if notes.segments else None,
    )


@lru_cache(maxsize=1)
def _models(settings: EngineSettings) -> tuple[StreamingModel, VoiceActivityDetector]:
    """Loaded once for a whole manifest: weights are dear."""
    return registry.streaming_model(settings), registry.voice_activity(settings)


def _packets(blocks: Iterable[FloatSamples], size: int) -> Iterator[FloatSamples]:
    """The same audio in packets of `size`; the last may be shorter."""
    held = np.zeros(0, np.float32)
    for block in blocks:
        held = np.concatenate((held, block))
        while len(held) >= size:
            yield held[:size]
            held = held[size:]
    if len(held):
        yield held


def _work(engine: Engine, clock: SimulatedClock, notes: _Notes) -> float:
    """Let the engine work until it waits for audio; returns the seconds that it took."""
    began = clock.now()
    is_working = True
    while is_working:
        is_working = engine.step()
        for event in engine.take_events():
            notes.take(event, clock.now())
    return clock.now() - began
