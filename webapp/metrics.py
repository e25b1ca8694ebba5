"""What Prometheus reads about the whole site: counted in the database and the broker at each visit.

Beside these, `/metrics` has the counters of the web process itself; an engine has a page of its own
(`ASR_METRICS_PORT`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import redis
from django.db.models import Count, QuerySet
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from redis.exceptions import RedisError

from asr_engine.client import engine_statuses_sync
from transcription.models import Job, LiveSession, Recording
from webapp.config import site_settings


class SiteCollector(Collector):
    """Gauges of the site; without a broker those of the engines are absent."""

    def collect(self) -> Iterator[Metric]:
        yield _by_state("asr_recordings", "Recordings by state.", Recording.objects.all())
        yield _by_state("asr_jobs", "Transcription jobs by state.", Job.objects.all())
        yield _by_state("asr_live_sessions", "Live sessions by state.", LiveSession.objects.all())
        yield from _engines()


def _by_state(name: str, text: str, things: QuerySet[Any]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=["state"])
    rows = things.order_by().values("state").annotate(count=Count("pk"))
    for row in rows:
        family.add_metric([row["state"]], row["count"])
    return family


def _engines() -> Iterator[GaugeMetricFamily]:
    slots = GaugeMetricFamily("asr_engine_slots", "Places for live streams.", labels=["engine"])
    free = GaugeMetricFamily("asr_engine_free_slots", "Free places.", labels=["engine"])
    lag = GaugeMetricFamily(
        "asr_engine_lag_seconds", "Largest lag among an engine's streams.", labels=["engine"]
    )
    try:
        with redis.Redis.from_url(site_settings().broker_url, socket_timeout=2) as broker:
            statuses = engine_statuses_sync(broker)
    except RedisError:
        return
    for status in statuses:
        slots.add_metric([status.engine], status.slots)
        free.add_metric([status.engine], status.free_slots)
        lag.add_metric([status.engine], status.lag_ms / 1000)
    yield from (slots, free, lag)
