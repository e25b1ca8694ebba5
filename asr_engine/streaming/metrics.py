"""What the engine measures of itself: Prometheus series."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS_BUCKETS = (
    *(0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08),
    *(0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.2, 1.6, 3.2, 6.4),
)
_BATCH_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_LABELS = ("mode_ms",)


@dataclass(frozen=True, slots=True)
class ModeMetrics:
    """The series of one latency mode. A step counts for the mode whose chunk it takes, all else for
    the mode of the stream."""

    step_seconds: Histogram
    batch_streams: Histogram
    ready_age_seconds: Histogram
    chunk_lag_seconds: Histogram
    finalisation_delay_seconds: Histogram
    first_partial_seconds: Histogram
    streams: Gauge


class EngineMetrics:
    """Series `asr_*` in a registry of their own, so that two engines may share a process.

    `modes_ms` are all the values that the label `mode_ms` ever has.
    """

    def __init__(self, modes_ms: Iterable[int]) -> None:
        self.registry = CollectorRegistry()
        self.slots = self._gauge("asr_slots", "Places for streams.")
        self.free_slots = self._gauge("asr_free_slots", "Places that are free.")
        self.failed_streams_total = Counter(
            "asr_failed_streams", "Streams closed by a model's exception.", registry=self.registry
        )
        step = self._seconds("asr_step_seconds", "Time of one model step.")
        batch = self._histogram("asr_batch_streams", "Streams in one model step.", _BATCH_BUCKETS)
        age = self._seconds(
            "asr_ready_age_seconds",
            "How long the chunk that was ready first had waited when its step began.",
        )
        lag = self._seconds(
            "asr_chunk_lag_seconds", "How late a chunk was heard after its deadline."
        )
        finalisation = self._seconds(
            "asr_finalisation_delay_seconds", "From the endpoint decision to the final."
        )
        partial = self._seconds(
            "asr_first_partial_seconds",
            "From the arrival of the first speech of an utterance to its first partial.",
        )
        streams = self._gauge("asr_streams", "Streams that are open.", _LABELS)
        self.modes = {
            mode_ms: ModeMetrics(
                step_seconds=step.labels(mode_ms),
                batch_streams=batch.labels(mode_ms),
                ready_age_seconds=age.labels(mode_ms),
                chunk_lag_seconds=lag.labels(mode_ms),
                finalisation_delay_seconds=finalisation.labels(mode_ms),
                first_partial_seconds=partial.labels(mode_ms),
                streams=streams.labels(mode_ms),
            )
            for mode_ms in modes_ms
        }

    def _seconds(self, name: str, text: str) -> Histogram:
        return self._histogram(name, text, _SECONDS_BUCKETS)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, text, _LABELS, buckets=buckets, registry=self.registry)

    def _gauge(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)
