"""Engines and models: what runs where, and orders to an engine."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from django.test import Client
from redis import Redis

from asr_engine.config import engine_settings
from asr_engine.protocol import (
    COMMAND_FIELD,
    ENGINES_KEY,
    RECORDER_LEADER_KEY,
    EngineStatus,
    commands_key,
    decode_command,
    encode,
    engine_key,
    session_key,
)
from transcription.models import LiveSession, LiveState
from webapp import health
from webapp.accounts.models import AuditEntry, User
from webapp.beats import SCHEDULE, write_beat

ADDRESS = "/administration/engines/"
STATUS = EngineStatus(
    engine="engine-1",
    model="scripted",
    languages=("en", "de"),
    can_detect_language=True,
    modes_ms=(160, 560),
    default_mode_ms=160,
    slots=20,
    free_slots=17,
    is_draining=False,
    beat_at_s=0.0,
    lag_ms=12,
    sessions=3,
)


def beat(broker: Redis, status: EngineStatus) -> None:
    broker.sadd(ENGINES_KEY, status.engine)
    broker.set(engine_key(status.engine), encode(status))


def shown(client: Client) -> str:
    response = client.get(ADDRESS)
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (STATUS, "Serving"),
        (replace(STATUS, free_slots=0), "Full"),
        (replace(STATUS, lag_ms=1500), "Late"),
        (replace(STATUS, is_draining=True), "Draining"),
        (replace(STATUS, is_draining=True, sessions=0), "Empty: it may be stopped"),
    ],
)
def test_an_engine_says_how_full_and_how_well_it_is(
    client: Client, broker: Redis, status: EngineStatus, state: str
) -> None:
    beat(broker, status)
    page = shown(client)
    assert f">{state}</span>" in page
    assert f"{status.slots - status.free_slots} of 20 slots taken" in page
    assert "English, German" in page
    assert "160 ms, 560 ms" in page


def test_a_running_session_is_named_with_its_engine_and_no_word_of_it(
    client: Client, alice: User, broker: Redis
) -> None:
    beat(broker, STATUS)
    session = LiveSession.objects.create(owner=alice, title="Board", state=LiveState.LIVE)
    broker.hset(session_key(str(session.id)), "owner", "engine-1:abc")
    page = shown(client)
    assert ">Board</a>" in page
    assert "heard by engine-1" in page
    assert f'href="/administration/open/live/{session.id}/"' in page


def test_processes_say_whether_they_live(client: Client, broker: Redis) -> None:
    write_beat(broker, "jobs@one/batch", "batch", now_s=time.time())
    write_beat(broker, "chores@one/chores", "chores", now_s=time.time() - 60)
    write_beat(broker, SCHEDULE, SCHEDULE, now_s=time.time())
    broker.set(RECORDER_LEADER_KEY, "one")
    page = shown(client)
    assert page.count(">No sign of life</span>") == 1
    assert page.count(">Running</span>") == 3
    assert "jobs@one" in page
    broker.delete(RECORDER_LEADER_KEY)
    assert shown(client).count(">No sign of life</span>") == 2


def test_without_an_engine_it_says_what_cannot_be_done(client: Client, broker: Redis) -> None:
    assert "Live captions cannot start." in shown(client)


def test_a_missing_model_comes_with_the_command_that_mends_it(
    client: Client, broker: Redis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = engine_settings().model_copy(update={"model_dir": tmp_path})
    monkeypatch.setattr("transcription.services.machine.engine_settings", lambda: settings)
    page = shown(client)
    assert "manage.py models fetch whisper-base" in page
    assert ">Missing</span>" in page


def test_the_page_asks_again_for_what_changes_alone(client: Client, broker: Redis) -> None:
    beat(broker, STATUS)
    part = client.get(ADDRESS, headers={"HX-Request": "true"}).content.decode()
    assert "engine-1" in part
    assert "models-title" not in part
    assert "<html" not in part


def test_a_broker_that_is_away_is_said_in_words(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = health.connect("redis://127.0.0.1:1/0")
    monkeypatch.setattr("transcription.services.machine.connect", lambda _url: away)
    assert "The broker does not answer" in shown(client)
    response = client.post(f"{ADDRESS}engine-1/", {"order": "drain"})
    assert response.status_code == 503
    assert "Nothing was changed" in response.content.decode()


@pytest.mark.parametrize(("order", "kind"), [("drain", "drain"), ("serve", "undrain")])
def test_an_order_reaches_the_engine_and_the_log(
    client: Client, admin: User, broker: Redis, order: str, kind: str
) -> None:
    beat(broker, STATUS)
    response = client.post(f"{ADDRESS}engine-1/", {"order": order}, follow=True)
    assert "It obeys within a second or two." in response.content.decode()
    if order == "drain":
        assert "Draining …" in response.content.decode()
    assert "Draining …" not in shown(client)
    ((_, fields),) = broker.xrange(commands_key("engine-1"))
    assert decode_command(fields[COMMAND_FIELD.encode()]).kind == kind
    told = AuditEntry.objects.get()
    assert (told.actor, told.act, told.detail["engine"]) == (admin, "engine_ordered", "engine-1")


@pytest.mark.parametrize(
    ("name", "order", "status"), [("engine-9", "drain", 404), ("engine-1", "explode", 400)]
)
def test_a_wrong_order_changes_nothing(
    client: Client, broker: Redis, name: str, order: str, status: int
) -> None:
    beat(broker, STATUS)
    assert client.post(f"{ADDRESS}{name}/", {"order": order}).status_code == status
    assert not broker.exists(commands_key(name))
    assert not AuditEntry.objects.exists()
