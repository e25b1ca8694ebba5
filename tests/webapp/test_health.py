"""Health: everybody learns whether it serves, administrators learn why not."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import redis
from django.test import Client

from asr_engine.protocol import RECORDER_LEADER_KEY
from webapp import health
from webapp.accounts.models import ApiToken, Scope, User
from webapp.beats import SCHEDULE, WORKERS_KEY, queues_served, write_beat
from webapp.config import site_settings

pytestmark = pytest.mark.django_db


@pytest.fixture
def broker() -> Iterator[redis.Redis]:
    with redis.Redis.from_url(site_settings().broker_url) as broker:
        broker.flushdb()
        yield broker
        broker.flushdb()


@pytest.fixture
def administrator() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("admin@example.org", "a long password"))
    return client


@pytest.fixture
def staff() -> Client:
    client = Client()
    client.force_login(User.objects.create_user("bob@example.org", "a long password"))
    return client


def test_alive_needs_no_log_in_and_no_database(client: Client) -> None:
    response = client.get("/healthz")
    assert response.status_code == 200
    assert response.content == b"alive\n"


def test_ready_when_every_part_answers(
    client: Client, broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(health.CHECKS, "engine", lambda: "")
    broker.set(RECORDER_LEADER_KEY, "recorder-1")
    for queue in ("batch", "chores", SCHEDULE):
        write_beat(broker, queue, queue, now_s=time.time())
    response = client.get("/readyz")
    assert (response.status_code, response.json()) == (200, {"status": "ready"})


def test_not_ready_names_the_part_to_administrators_only(
    broker: redis.Redis, administrator: Client, staff: Client, client: Client
) -> None:
    for stranger in (staff, client):
        response = stranger.get("/readyz")
        assert (response.status_code, response.json()) == (503, {"status": "not_ready"})
    checks = administrator.get("/readyz").json()["checks"]
    assert checks["database"] == checks["broker"] == checks["audio"] == "ok"
    assert "No speech engine" in checks["engine"]
    assert "No recorder" in checks["recorder"]
    assert "batch, chores, schedule" in checks["workers"]


def test_dead_broker_is_a_finding_and_not_a_traceback(
    administrator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = site_settings().model_copy(update={"broker_url": "redis://127.0.0.1:1/0"})
    monkeypatch.setattr(health, "site_settings", lambda: dead)
    checks = administrator.get("/readyz").json()["checks"]
    assert checks["database"] == "ok"
    assert checks["broker"] == "Its Redis server does not answer."


def test_strangers_get_404_for_metrics(client: Client, staff: Client) -> None:
    assert client.get("/metrics").status_code == 404
    assert staff.get("/metrics").status_code == 404


def test_administrator_reads_metrics(administrator: Client, broker: redis.Redis) -> None:
    page = administrator.get("/metrics").content.decode()
    assert "# TYPE asr_jobs gauge" in page
    assert "process_resident_memory_bytes" in page


def test_token_reads_metrics_by_its_scope(client: Client, broker: redis.Redis) -> None:
    person = User.objects.create_superuser("admin@example.org", "a long password")
    for scope, status in ((Scope.MONITOR, 200), (Scope.LIVE_READ, 404)):
        _, secret = ApiToken.issue(user=person, name="monitor", scopes=[scope])
        headers = {"Authorization": f"Bearer {secret}"}
        assert client.get("/metrics", headers=headers).status_code == status
        assert ("checks" in client.get("/readyz", headers=headers).json()) == (status == 200)


def test_monitoring_network_reads_metrics_without_logging_in(
    client: Client, broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = site_settings().model_copy(update={"monitor_networks": "192.0.2.0/24"})
    monkeypatch.setattr(health, "site_settings", lambda: changed)
    assert client.get("/metrics", REMOTE_ADDR="192.0.2.9").status_code == 200
    assert client.get("/metrics", REMOTE_ADDR="198.51.100.9").status_code == 404


def test_worker_that_stopped_beating_serves_nothing_and_is_forgotten_in_the_end(
    broker: redis.Redis,
) -> None:
    now_s = 1_000_000.0
    write_beat(broker, "jobs@a", "batch", now_s=now_s - 60)
    write_beat(broker, "chores@a", "chores", now_s=now_s - 1)
    write_beat(broker, "old@a", "batch", now_s=now_s - 90_000)
    assert queues_served(broker, now_s=now_s) == {"chores"}
    assert broker.hkeys(WORKERS_KEY) == [b"jobs@a", b"chores@a"]
