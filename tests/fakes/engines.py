"""Engines on a virtual clock, and ways to play audio into them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from asr_engine.audio import FloatSamples
from asr_engine.backends.scripted import ScriptedDetector, ScriptedModel
from asr_engine.endpointing import EndpointRules
from asr_engine.events import Final, StreamEvent
from asr_engine.ports import Chunk, Hypothesis, StreamingModel
from asr_engine.streaming import Engine


class VirtualClock:
    """Seconds that pass only when told to."""

    def __init__(self) -> None:
        self.time_s = 100.0

    def now(self) -> float:
        return self.time_s

    def advance(self, seconds: float) -> None:
        self.time_s += seconds


class FailingModel(ScriptedModel):
    """Raises in the step (or finish) of any stream named in `broken`."""

    def __init__(self, *, is_gated: bool = False) -> None:
        super().__init__(is_gated=is_gated)
        self.broken: set[str] = set()

    def step(self, chunks: Sequence[Chunk]) -> list[Hypothesis]:
        if any(chunk.stream in self.broken for chunk in chunks):
            raise RuntimeError("a decoder's own words")
        return super().step(chunks)


class CountingModel(ScriptedModel):
    """Remembers what each step was given: (stream, samples) of every chunk."""

    def __init__(
        self,
        *,
        is_gated: bool = False,
        takes_longer_chunks: bool = False,
        mixes_chunks: bool = True,
    ) -> None:
        super().__init__(
            is_gated=is_gated,
            takes_longer_chunks=takes_longer_chunks,
            mixes_chunks=mixes_chunks,
        )
        self.steps: list[list[tuple[str, int]]] = []

    def step(self, chunks: Sequence[Chunk]) -> list[Hypothesis]:
        self.steps.append([(chunk.stream, len(chunk.samples)) for chunk in chunks])
        return super().step(chunks)


def scripted_engine(
    model: StreamingModel | None = None,
    *,
    clock: VirtualClock | None = None,
    rules: EndpointRules | None = None,
    is_gated: bool = False,
    slots: int = 0,
) -> Engine:
    return Engine(
        model or ScriptedModel(is_gated=is_gated),
        ScriptedDetector(),
        rules,
        clock or VirtualClock(),
        slots=slots,
    )


def run(engine: Engine) -> list[StreamEvent]:
    """Step until nothing is left to do; the events in order."""
    while engine.step():
        pass
    return engine.take_events()


def packets(
    samples: FloatSamples, sizes: Iterable[int], *, first_sample: int = 0
) -> list[tuple[int, FloatSamples]]:
    """`samples` in packets of `sizes`, the last size for all that follow."""
    cut: list[tuple[int, FloatSamples]] = []
    position = 0
    sizes = iter(sizes)
    size = 3200
    while position < len(samples):
        size = next(sizes, size)
        cut.append((first_sample + position, samples[position : position + size]))
        position += size
    return cut


def hear_alone(
    engine: Engine,
    samples: FloatSamples,
    *,
    stream: str = "alone",
    mode_ms: int = 0,
    between: Callable[[], None] = lambda: None,
) -> list[StreamEvent]:
    """Open a stream, play `samples` as they would come, end it and close it."""
    engine.open_stream(stream, mode_ms=mode_ms)
    events: list[StreamEvent] = []
    for first_sample, packet in packets(samples, [3200]):
        engine.accept_audio(stream, first_sample, packet)
        events += run(engine)
        between()
    engine.end_audio(stream)
    events += run(engine)
    engine.close_stream(stream)
    return events


def finals_of(events: Iterable[StreamEvent], stream: str | None = None) -> list[Final]:
    return [
        event
        for event in events
        if isinstance(event, Final) and (stream is None or event.stream == stream)
    ]


def text_of(events: Iterable[StreamEvent], stream: str | None = None) -> str:
    return " ".join(final.text for final in finals_of(events, stream))
