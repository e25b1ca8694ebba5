"""What the engine measures of itself: Prometheus series."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_STEP_BUCKETS = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56)
_DELAY_BUCKETS = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
_BATCH_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128)


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
