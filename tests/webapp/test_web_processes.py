"""What the web processes say of themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
import redis
from django.test import Client

from webapp.accounts.models import User
from webapp.config import site_settings
from webapp.web_processes import (
    FORGET_S,
    FRESH_S,
    WEBS_KEY,
    WebProcess,
    web_processes,
    write_web,
)


@pytest.fixture
def broker() -> Iterator[redis.Redis]:
    with redis.Redis.from_url(site_settings().broker_url) as client:
        client.delete(WEBS_KEY)
        yield client
        client.delete(WEBS_KEY)


def test_each_is_known_by_its_name(broker: redis.Redis) -> None:
    write_web(broker, "web-1", sockets=3, now_s=1000.0)
    write_web(broker, "web-2", sockets=0, now_s=1000.0 - FRESH_S - 1)
    assert web_processes(broker, now_s=1000.0) == [
        WebProcess("web-1", 3, is_silent=False),
        WebProcess("web-2", 0, is_silent=True),
    ]


def test_one_that_was_taken_out_of_service_is_forgotten(broker: redis.Redis) -> None:
    write_web(broker, "web-2", sockets=0, now_s=1000.0)
    assert web_processes(broker, now_s=1000.0 + FORGET_S + 1) == []
    assert broker.hlen(WEBS_KEY) == 0


@pytest.mark.django_db
def test_health_and_metrics_name_them(
    broker: redis.Redis, administrator: User, client_of: Callable[[User], Client]
) -> None:
    write_web(broker, "web-1", sockets=7, now_s=time.time())
    write_web(broker, "web-2", sockets=0, now_s=time.time() - FRESH_S - 1)
    client = client_of(administrator)
    assert "web-2" in client.get("/readyz").json()["checks"]["web"]
    assert 'asr_web_sockets{web="web-1"} 7.0' in client.get("/metrics").content.decode()
