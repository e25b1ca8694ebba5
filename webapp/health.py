"""Is it alive, can it serve, what is it doing: `/healthz`, `/readyz`, `/metrics`.

`/healthz` is open and touches nothing. `/readyz` answers 200 or 503 to everybody, and says which
part fails only to administrators, to tokens with the scope `monitor`, and to the networks of
`TRANSCRIBE_MONITOR_NETWORKS`, who alone may read `/metrics`.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from dataclasses import dataclass

import redis
from django.db import DatabaseError, connection
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from asr_engine.client import engine_statuses_sync
from asr_engine.protocol import RECORDER_LEADER_KEY
from webapp.accounts.models import User
from webapp.accounts.tokens import may_monitor
from webapp.beats import SCHEDULE, queues_served
from webapp.config import site_settings
from webapp.metrics import SiteCollector
from webapp.web_processes import web_processes

CONNECT_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found; `problem` is a sentence, empty when all is well."""

    name: str
    problem: str = ""

    @property
    def is_well(self) -> bool:
        return not self.problem


def connect(url: str) -> redis.Redis:
    """A client that gives up soon (redis-py's default is ten patient retries): we must answer."""
    return redis.Redis.from_url(
        url,
        socket_timeout=CONNECT_TIMEOUT_S,
        socket_connect_timeout=CONNECT_TIMEOUT_S,
        retry=Retry(NoBackoff(), 0),
    )


def check_database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "The database does not answer."
    return ""


def check_broker() -> str:
    with connect(site_settings().broker_url) as broker:
        broker.ping()
    return ""


def check_audio() -> str:
    with connect(site_settings().audio_url) as audio:
        audio.ping()
    return ""


def check_engine() -> str:
    with connect(site_settings().broker_url) as broker:
        statuses = engine_statuses_sync(broker)
    return "" if statuses else "No speech engine runs: live captions cannot start."


def check_recorder() -> str:
    with connect(site_settings().broker_url) as broker:
        leads = broker.exists(RECORDER_LEADER_KEY)
    return "" if leads else "No recorder runs: captions are not being stored."


def check_workers() -> str:
    with connect(site_settings().broker_url) as broker:
        served = queues_served(broker, now_s=time.time())
    missing = {"batch", "chores", SCHEDULE} - served
    return f"No worker serves: {', '.join(sorted(missing))}." if missing else ""


def check_web() -> str:
    with connect(site_settings().broker_url) as broker:
        silent = [web.name for web in web_processes(broker, now_s=time.time()) if web.is_silent]
    return f"No sign of life from: {', '.join(silent)}." if silent else ""


CHECKS: dict[str, Callable[[], str]] = {
    "database": check_database,
    "broker": check_broker,
    "audio": check_audio,
    "engine": check_engine,
    "recorder": check_recorder,
    "workers": check_workers,
    "web": check_web,
}


def findings() -> list[Finding]:
    """Run every check; a Redis that does not answer is that check's problem."""
    found = []
    for name, check in CHECKS.items():
        try:
            found.append(Finding(name, check()))
        except RedisError:
            found.append(Finding(name, "Its Redis server does not answer."))
    return found


def may_see_details(request: HttpRequest) -> bool:
    """Administrators, monitoring tokens, and addresses in `TRANSCRIBE_MONITOR_NETWORKS`."""
    user = request.user
    if isinstance(user, User) and user.is_active and user.is_administrator:
        return True
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and may_monitor(secret.strip()):
        return True
    try:
        address = ipaddress.ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    return any(address in network for network in site_settings().monitoring_networks)


@never_cache
@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    return HttpResponse("alive\n", content_type="text/plain")


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    found = findings()
    is_ready = all(finding.is_well for finding in found)
    answer: dict[str, object] = {"status": "ready" if is_ready else "not_ready"}
    if may_see_details(request):
        answer["checks"] = {finding.name: finding.problem or "ok" for finding in found}
    return JsonResponse(answer, status=200 if is_ready else 503)


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    if not may_see_details(request):
        raise Http404
    try:
        with connect(site_settings().broker_url) as broker:
            engines = engine_statuses_sync(broker)
            webs = web_processes(broker, now_s=time.time())
    except RedisError:
        engines, webs = [], []
    pages = generate_latest(REGISTRY) + generate_latest(SiteCollector(engines, webs))
    return HttpResponse(pages, content_type=CONTENT_TYPE_LATEST)
