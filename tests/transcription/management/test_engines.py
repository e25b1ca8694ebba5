"""`manage.py engines`, with engines played through the broker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from redis import Redis

from asr_engine.protocol import (
    COMMAND_FIELD,
    ENGINES_KEY,
    EngineStatus,
    commands_key,
    decode_command,
    encode,
    engine_key,
)
from transcription.management.commands import engines
from webapp.config import site_settings

STATUS = EngineStatus(
    engine="old",
    model="scripted",
    languages=(),
    can_detect_language=False,
    modes_ms=(160, 560),
    default_mode_ms=160,
    slots=20,
    free_slots=17,
    is_draining=False,
    beat_at_s=0.0,
    lag_ms=40,
    sessions=3,
)


@pytest.fixture
def broker() -> Iterator[Redis]:
    with Redis.from_url(site_settings().broker_url) as broker:
        broker.flushdb()
        yield broker
        broker.flushdb()


def beat(broker: Redis, status: EngineStatus) -> None:
    broker.sadd(ENGINES_KEY, status.engine)
    broker.set(engine_key(status.engine), encode(status))


def run(*arguments: str) -> str:
    output = StringIO()
    call_command("engines", *arguments, stdout=output)
    return output.getvalue()


@pytest.fixture
def obedient(broker: Redis) -> Iterator[Callable[[int], None]]:
    """`obedient(sessions)`: the engine `old` does what it is told next, and has so many left."""
    threads: list[threading.Thread] = []

    def obey(sessions: int) -> None:
        answer = broker.xread({commands_key("old"): "0"}, block=10_000)
        fields = answer[0][1][0][1]
        is_draining = decode_command(fields[COMMAND_FIELD.encode()]).kind == "drain"
        beat(broker, replace(STATUS, is_draining=is_draining, sessions=sessions))

    def start(sessions: int) -> None:
        thread = threading.Thread(target=obey, args=(sessions,))
        thread.start()
        threads.append(thread)

    yield start
    for thread in threads:
        thread.join()


def test_list_says_what_each_engine_has_and_does(broker: Redis) -> None:
    beat(broker, STATUS)
    beat(broker, replace(STATUS, engine="new-engine", is_draining=True, sessions=0, free_slots=20))
    lines = run().splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["new-engine", "scripted", "0", "20", "of", "20", "40", "ms", "empty"],
        ["old", "scripted", "3", "17", "of", "20", "40", "ms", "serving"],
    ]


def test_list_without_engines_says_so(broker: Redis) -> None:
    assert run("list") == "No engine is running.\n"


def test_drain_waits_until_the_engine_is_empty(
    broker: Redis, obedient: Callable[[int], None]
) -> None:
    beat(broker, STATUS)
    obedient(0)
    assert run("drain", "old") == "old is empty: it may be stopped.\n"


def test_drain_says_where_the_sessions_stay_when_no_other_engine_has_room(
    broker: Redis, obedient: Callable[[int], None]
) -> None:
    beat(broker, STATUS)
    beat(broker, replace(STATUS, engine="full", free_slots=0))
    obedient(1)
    output = StringIO()
    with pytest.raises(CommandError, match=r"^old still has 1 session; it goes on draining\.$"):
        call_command("engines", "drain", "old", "--wait", "0", stdout=output)
    assert output.getvalue() == (
        "No other engine has room: old keeps 1 session, and captions go on there.\n"
    )


def test_progress_names_the_engines_that_take_the_sessions() -> None:
    others = [replace(STATUS, engine=name) for name in ("a", "b")]
    draining = replace(STATUS, is_draining=True)
    assert engines.progress(draining, [draining, *others]) == "3 sessions left, moving to a, b."


def test_undrain_lets_the_engine_serve_again(
    broker: Redis, obedient: Callable[[int], None]
) -> None:
    beat(broker, replace(STATUS, is_draining=True))
    obedient(0)
    assert run("undrain", "old") == "old takes sessions again.\n"


def test_an_unknown_engine_is_refused_with_the_known_ones(broker: Redis) -> None:
    beat(broker, STATUS)
    with pytest.raises(CommandError, match=r"No engine other is running. Running: old\."):
        run("drain", "other")
    assert not broker.exists(commands_key("other"))


def test_an_engine_that_does_not_answer_is_said(
    broker: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "ANSWER_TIMEOUT_S", 0.05)
    beat(broker, STATUS)
    with pytest.raises(CommandError, match=r"old does not answer\."):
        run("drain", "old")
