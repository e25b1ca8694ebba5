"""Which streams share the next model step. Pure: no model, no state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from asr_engine.audio import SAMPLE_RATE

MAX_CHUNKS_AT_ONCE = 8
"""Chunks that a laggard may take in one step: bounds how long the others wait for it."""


@dataclass(frozen=True, slots=True)
class ReadyStream:
    """A stream with audio for a step.

    `available_samples` may be fed now in chunks of `chunk_samples`; it is below that only for the
    short last chunk of a gated model's utterance. `deadline_s` is when its next chunk will be due
    on the engine's clock.
    """

    stream: str
    chunk_samples: int
    available_samples: int
    deadline_s: float


@dataclass(frozen=True, slots=True)
class PlannedChunk:
    stream: str
    samples: int
    deadline_s: float


@dataclass(frozen=True, slots=True)
class Batch:
    """One model step: at most one chunk a stream, all of one length, the most urgent first."""

    chunk_samples: int
    chunks: tuple[PlannedChunk, ...]

    @property
    def ready_at_s(self) -> float:
        """When the chunk that waited longest was there: a chunk's length before its deadline."""
        return self.chunks[0].deadline_s - self.chunk_samples / SAMPLE_RATE


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Oldest deadline first, up to `batch_limit` streams with chunks of the same length.

    With `takes_longer_chunks` a stream that is past its deadline takes several chunks at once.
    """

    batch_limit: int
    takes_longer_chunks: bool = False

    def plan(self, ready: Iterable[ReadyStream], now: float) -> Batch | None:
        """The next step, or None when nothing is ready."""
        in_order = sorted(ready, key=lambda item: (item.deadline_s, item.stream))
        if not in_order:
            return None
        length = in_order[0].chunk_samples
        chosen = [item for item in in_order if item.chunk_samples == length][: self.batch_limit]
        chunks = tuple(
            PlannedChunk(item.stream, self._length(item, now), item.deadline_s) for item in chosen
        )
        return Batch(length, chunks)

    def _length(self, item: ReadyStream, now: float) -> int:
        if item.available_samples <= item.chunk_samples:
            return item.available_samples
        if not self.takes_longer_chunks or now <= item.deadline_s:
            return item.chunk_samples
        whole_chunks = item.available_samples // item.chunk_samples
        return item.chunk_samples * min(whole_chunks, MAX_CHUNKS_AT_ONCE)
