"""What the engine measures of itself: Prometheus series, and the load that admission reads."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

LOAD_WINDOW_S = 5.0
BUSY_SHARE = 0.85
"""Share of time in full batches beyond which another stream would make every stream late."""
FULL_BATCH_SHARE = 0.8
TOLERATED_LAG_MS = 1000
"""Lag of any stream beyond which no other is admitted."""

_STEP_BUCKETS = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56)
_DELAY_BUCKETS = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
_BATCH_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True, slots=True)
class _Step:
    at_s: float
    busy_s: float
    fill: float


class LoadMeter:
    """How busy the model was over the last seconds.

    Small steps one after the other are no overload where a batch could hold more streams, so time
    counts as load by how full its batch was.
    """

    def __init__(self) -> None:
        self._steps: deque[_Step] = deque()

    def add(self, *, now: float, busy_s: float, fill: float) -> None:
        self._steps.append(_Step(now, busy_s, fill))
        self._forget(now)

    def is_saturated(self, now: float) -> bool:
        self._forget(now)
        busy = sum(step.busy_s for step in self._steps if step.fill >= FULL_BATCH_SHARE)
        return busy > BUSY_SHARE * LOAD_WINDOW_S

    def _forget(self, now: float) -> None:
        while self._steps and self._steps[0].at_s < now - LOAD_WINDOW_S:
            self._steps.popleft()


class EngineMetrics:
    """Series `asr_*` in a registry of their own, so that two engines may share a process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.step_seconds = Histogram(
            "asr_step_seconds",
            "Time of one model step.",
            buckets=_STEP_BUCKETS,
            registry=self.registry,
        )
        self.batch_streams = Histogram(
            "asr_batch_streams",
            "Streams in one model step.",
            buckets=_BATCH_BUCKETS,
            registry=self.registry,
        )
        self.chunk_lag_seconds = Histogram(
            "asr_chunk_lag_seconds",
            "How late a chunk was heard after its deadline.",
            buckets=_DELAY_BUCKETS,
            registry=self.registry,
        )
        self.finalisation_delay_seconds = Histogram(
            "asr_finalisation_delay_seconds",
            "From the endpoint decision to the final.",
            buckets=_DELAY_BUCKETS,
            registry=self.registry,
        )
        self.first_partial_seconds = Histogram(
            "asr_first_partial_seconds",
            "From the arrival of the first speech of an utterance to its first partial.",
            buckets=_DELAY_BUCKETS,
            registry=self.registry,
        )
        self.slots = Gauge("asr_slots", "Places for streams.", registry=self.registry)
        self.free_slots = Gauge("asr_free_slots", "Places that are free.", registry=self.registry)
        self.failed_streams_total = Counter(
            "asr_failed_streams", "Streams closed by a model's exception.", registry=self.registry
        )
