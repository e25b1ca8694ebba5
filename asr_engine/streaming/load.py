"""How busy the engine would be with the streams that it has and one more: what admission asks
beside the free slots. Pure but for what it was told; the caller brings the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from asr_engine.audio import SAMPLE_RATE, ms_to_samples
from asr_engine.streaming.scheduler import MAX_CHUNKS_AT_ONCE

BUSY_SHARE = 0.85
"""Share of the time beyond which one stream more would make every stream late."""
TOLERATED_LAG_MS = 1000
"""Lag of any stream beyond which no other is admitted."""
WINDOW_S = 10.0
"""How far back it counts how slow the machine is now, and what else the engine does."""
KEPT_TIMES = 5
"""Steps of one size that are remembered: the median passes over one that was disturbed."""
EXACT_SIZES = 16
"""Batch sizes that are told apart; larger ones to an eighth."""


@dataclass(frozen=True, slots=True)
class _Step:
    at_s: float
    busy_s: float
    slowness: float


class LoadMeter:
    """Learns what steps cost from those that were made.

    A step is taken to last no longer than a larger one did (more streams, longer chunks), nor than
    the smaller ones together that could do its work. So a model that gains nothing from batches,
    one whose step grows with them and one whose step hardly does are all judged by what they
    showed, and never too kindly: a batch larger than any seen corrects the estimate when it comes.
    """

    def __init__(self, *, batch_limit: int, takes_longer_chunks: bool = False) -> None:
        self._batch_limit = batch_limit
        self._takes_longer_chunks = takes_longer_chunks
        self._times: dict[tuple[int, int], deque[float]] = {}
        self._typical: dict[tuple[int, int], float] = {}
        self._steps: deque[_Step] = deque()
        self._turns: deque[tuple[float, float]] = deque()
        self._since_s: float | None = None

    def add_step(self, *, now: float, chunk_samples: int, streams: int, busy_s: float) -> None:
        """A model step of `streams` chunks of this length took `busy_s`."""
        key = chunk_samples, _told_apart(streams)
        times = self._times.setdefault(key, deque(maxlen=KEPT_TIMES))
        times.append(busy_s)
        self._typical[key] = median(times)
        expected = self._step_s(chunk_samples, streams)
        self._steps.append(_Step(now, busy_s, busy_s / expected if expected else 1.0))

    def add_turn(self, *, now: float, busy_s: float) -> None:
        """The engine was busy for `busy_s` at a stretch, a model step included."""
        if self._since_s is None:
            self._since_s = now - busy_s
        self._turns.append((now, busy_s))
        self._forget(now)

    def busy_share(self, streams: Mapping[int, int], *, now: float) -> float:
        """Share of the time that `streams` (how many, by chunk length) will keep the engine busy.

        One of them is new. 0 while no step was measured: nothing is known against them.
        """
        if not self._typical:
            return 0.0
        self._forget(now)
        slowness = max(1.0, median([step.slowness for step in self._steps] or [1.0]))
        share = slowness * sum(
            self._round_s(chunk_samples, count) * SAMPLE_RATE / self._due_samples(chunk_samples)
            for chunk_samples, count in streams.items()
        )
        total = sum(streams.values())
        return share + self._other_share(now) * total / max(1, total - 1)

    def _round_s(self, chunk_samples: int, streams: int) -> float:
        """Seconds of the steps that feed one chunk to each stream."""
        full, rest = divmod(streams, self._batch_limit)
        seconds = full * self._step_s(chunk_samples, self._batch_limit) if full else 0.0
        return seconds + (self._step_s(chunk_samples, rest) if rest else 0.0)

    def _step_s(self, chunk_samples: int, streams: int) -> float:
        return min(
            seconds * max(1.0, streams / size) * max(1.0, chunk_samples / length)
            for (length, size), seconds in self._typical.items()
        )

    def _due_samples(self, chunk_samples: int) -> int:
        """Audio that a stream may gather for a step: more than a chunk where a step takes it."""
        if not self._takes_longer_chunks:
            return chunk_samples
        gathered = 1 + ms_to_samples(TOLERATED_LAG_MS) // chunk_samples
        return chunk_samples * min(gathered, MAX_CHUNKS_AT_ONCE)

    def _other_share(self, now: float) -> float:
        """Share of the time that goes to all but steps: voice activity, endpoints, book-keeping."""
        if self._since_s is None:
            return 0.0
        turns = sum(busy_s for _, busy_s in self._turns)
        steps = sum(step.busy_s for step in self._steps)
        return max(0.0, turns - steps) / min(WINDOW_S, max(1.0, now - self._since_s))

    def _forget(self, now: float) -> None:
        oldest = now - WINDOW_S
        while self._steps and self._steps[0].at_s < oldest:
            self._steps.popleft()
        while self._turns and self._turns[0][0] < oldest:
            self._turns.popleft()


def _told_apart(streams: int) -> int:
    """`streams`, rounded down to an eighth: what is known of more holds for fewer."""
    if streams < EXACT_SIZES:
        return streams
    step = 1 << (streams.bit_length() - 4)
    return streams // step * step
