"""What Prometheus reads about the whole site: counted in the database at each visit.

Beside these, `/metrics` has the counters of the web process itself; an engine has a page of its own
(`ASR_METRICS_PORT`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import Count, QuerySet
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from asr_engine.protocol import EngineStatus
from transcription.models import Job, LiveSession, Recording
from webapp.web_processes import WebProcess


class SiteCollector(Collector):
    """Gauges of the site, with what the engines and the web processes said last."""

    def __init__(self, engines: Iterable[EngineStatus], webs: Iterable[WebProcess] = ()) -> None:
        self._engines = engines
        self._webs = webs

    def collect(self) -> Iterator[Metric]:
        yield _by_state("asr_recordings", "Recordings by state.", Recording.objects.all())
        yield _by_state("asr_jobs", "Transcription jobs by state.", Job.objects.all())
        yield _by_state("asr_live_sessions", "Live sessions by state.", LiveSession.objects.all())
        yield from _of_engines(self._engines)
        sockets = GaugeMetricFamily(
            "asr_web_sockets", "Open sockets of a web process.", labels=["web"]
        )
        for web in self._webs:
            sockets.add_metric([web.name], web.sockets)
        yield sockets


def _by_state(name: str, text: str, things: QuerySet[Any]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=["state"])
    rows = things.order_by().values("state").annotate(count=Count("pk"))
    for row in rows:
        family.add_metric([row["state"]], row["count"])
    return family


def _of_engines(statuses: Iterable[EngineStatus]) -> Iterator[GaugeMetricFamily]:
    slots = GaugeMetricFamily("asr_engine_slots", "Places for live streams.", labels=["engine"])
    free = GaugeMetricFamily("asr_engine_free_slots", "Free places.", labels=["engine"])
    lag = GaugeMetricFamily(
        "asr_engine_lag_seconds", "Largest lag among an engine's streams.", labels=["engine"]
    )
    for status in statuses:
        slots.add_metric([status.engine], status.slots)
        free.add_metric([status.engine], status.free_slots)
        lag.add_metric([status.engine], status.lag_ms / 1000)
    yield from (slots, free, lag)
