from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import redis
from redis.asyncio import Redis

from asr_engine import client
from asr_engine.errors import (
    EngineError,
    NoEngineError,
    NoFreeSlotError,
    OverloadedError,
    UnsupportedLanguageError,
    UnsupportedModeError,
)
from asr_engine.protocol import (
    COMMAND_FIELD,
    ENGINES_KEY,
    SESSIONS_KEY,
    Command,
    EngineStatus,
    Reply,
    commands_key,
    decode_command,
    encode,
    engine_key,
    reply_key,
    session_key,
)

BROKER_URL = os.environ["TRANSCRIBE_BROKER_URL"].removesuffix("/0") + "/8"
STATUS = EngineStatus(
    engine="one",
    model="scripted",
    languages=("en",),
    can_detect_language=False,
    modes_ms=(160,),
    default_mode_ms=160,
    slots=4,
    free_slots=4,
    is_draining=False,
    beat_at_s=0.0,
)


@pytest.fixture
async def broker() -> AsyncIterator[Redis]:
    connection = Redis.from_url(BROKER_URL, socket_timeout=30)
    await connection.flushdb()
    yield connection
    await connection.aclose()


async def beat(broker: Redis, status: EngineStatus) -> None:
    await broker.set(engine_key(status.engine), encode(status), ex=30)
    await broker.sadd(ENGINES_KEY, status.engine)


async def answer(broker: Redis, engine: str, reply: Reply) -> Command:
    """Play an engine: answer the first command that it gets."""
    ((_key, entries),) = await broker.xread({commands_key(engine): "0-0"}, block=5000)
    command = decode_command(entries[0][1][COMMAND_FIELD.encode()])
    await broker.rpush(reply_key(command.request), encode(reply))
    return command


async def ask(broker: Redis, language: str | None = "en") -> Reply:
    return await client.request_stream(broker, session="s", language=language, mode_ms=0)


async def test_the_answer_of_the_engine_is_returned(broker: Redis) -> None:
    await beat(broker, STATUS)
    expected = Reply(True, "one", 3, 160, 160)
    reply, command = await asyncio.gather(ask(broker), answer(broker, "one", expected))
    assert reply == expected
    assert (command.kind, command.session, command.language) == ("open", "s", "en")
    assert abs(command.sent_at_s - time.time()) < 60


async def test_nothing_is_left_of_an_engine_that_never_comes_back(broker: Redis) -> None:
    await beat(broker, STATUS)
    await asyncio.gather(ask(broker), answer(broker, "one", Reply(True, "one")))
    assert 0 < await broker.ttl(commands_key("one")) <= client.COMMANDS_TTL_S


async def test_the_engine_with_most_free_slots_is_asked_first(broker: Redis) -> None:
    await beat(broker, STATUS)
    await beat(broker, replace(STATUS, engine="two", free_slots=9, slots=9))
    reply, _ = await asyncio.gather(ask(broker), answer(broker, "two", Reply(True, "two")))
    assert reply.engine == "two"
    assert await broker.exists(commands_key("one")) == 0


async def test_a_refusal_leads_to_the_next_engine(broker: Redis) -> None:
    await beat(broker, replace(STATUS, free_slots=9))
    await beat(broker, replace(STATUS, engine="two"))
    refusal = Reply(False, "one", code="overloaded", reason="busy")
    reply, *_ = await asyncio.gather(
        ask(broker), answer(broker, "one", refusal), answer(broker, "two", Reply(True, "two"))
    )
    assert reply.engine == "two"


async def test_the_engine_that_runs_the_session_is_asked_first(broker: Redis) -> None:
    """Full or draining, it has the stream already."""
    await beat(broker, replace(STATUS, free_slots=0, is_draining=True))
    await beat(broker, replace(STATUS, engine="two", free_slots=9))
    await broker.hset(session_key("s"), "owner", "one:abc")
    reply, _ = await asyncio.gather(ask(broker), answer(broker, "one", Reply(True, "one")))
    assert reply.engine == "one"


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("no_free_slot", NoFreeSlotError),
        ("overloaded", OverloadedError),
        ("unsupported_language", UnsupportedLanguageError),
    ],
)
async def test_a_refusal_is_raised_with_its_reason(
    broker: Redis, code: str, error: type[EngineError]
) -> None:
    await beat(broker, STATUS)
    refusal = Reply(False, "one", code=code, reason="because")
    asked, _ = await asyncio.gather(
        ask(broker), answer(broker, "one", refusal), return_exceptions=True
    )
    assert isinstance(asked, error)
    assert str(asked) == "because"


@pytest.mark.parametrize(
    ("statuses", "language", "error"),
    [
        ([], "en", NoEngineError),
        ([replace(STATUS, is_draining=True)], "en", NoEngineError),
        ([replace(STATUS, free_slots=0)], "en", NoFreeSlotError),
        ([STATUS], "zh", UnsupportedLanguageError),
    ],
)
async def test_without_a_fit_engine_the_reason_is_told_at_once(
    broker: Redis, statuses: list[EngineStatus], language: str, error: type[EngineError]
) -> None:
    for status in statuses:
        await beat(broker, status)
    with pytest.raises(error):
        await ask(broker, language)


async def test_an_engine_that_does_not_answer_counts_as_none(
    broker: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ADMISSION_TIMEOUT_S", 0.05)
    await beat(broker, STATUS)
    with pytest.raises(NoEngineError):
        await ask(broker)


async def test_engines_that_no_longer_beat_are_forgotten(broker: Redis) -> None:
    await beat(broker, STATUS)
    await broker.sadd(ENGINES_KEY, "gone")
    assert await client.engine_statuses(broker) == [STATUS]
    assert await broker.smembers(ENGINES_KEY) == {b"one"}


async def test_statuses_are_read_without_an_event_loop_too(broker: Redis) -> None:
    await beat(broker, STATUS)
    connection = redis.Redis.from_url(BROKER_URL)
    assert client.engine_statuses_sync(connection) == [STATUS]
    connection.close()


# Modes --------------------------------------------------------------------------------------------


async def change_mode(broker: Redis, mode_ms: int = 560) -> Reply | None:
    return await client.set_stream_mode(broker, session="s", mode_ms=mode_ms)


async def test_a_mode_change_is_answered_by_the_owner(broker: Redis) -> None:
    await broker.hset(session_key("s"), "owner", "one:abc")
    expected = Reply(True, "one", 3, 560, 200, modes_ms=(160, 560))
    reply, command = await asyncio.gather(change_mode(broker), answer(broker, "one", expected))
    assert reply == expected
    assert (command.kind, command.session, command.mode_ms) == ("set_mode", "s", 560)


@pytest.mark.parametrize(
    ("code", "error"),
    [("unsupported_mode", UnsupportedModeError), ("unknown_stream", NoEngineError)],
)
async def test_a_refused_mode_change_is_raised(
    broker: Redis, code: str, error: type[EngineError]
) -> None:
    await broker.hset(session_key("s"), "owner", "one:abc")
    refusal = Reply(False, "one", code=code, reason="because")
    asked, _ = await asyncio.gather(
        change_mode(broker), answer(broker, "one", refusal), return_exceptions=True
    )
    assert isinstance(asked, error)


async def test_a_language_change_is_answered_by_the_owner(broker: Redis) -> None:
    await broker.hset(session_key("s"), "owner", "one:abc")
    expected = Reply(True, "one", 3, 560, 200, modes_ms=(160, 560))
    reply, command = await asyncio.gather(
        client.set_stream_language(broker, session="s", language="de"),
        answer(broker, "one", expected),
    )
    assert reply == expected
    assert (command.kind, command.session, command.language) == ("set_language", "s", "de")


async def test_an_owner_that_is_dead_changes_no_mode(
    broker: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ADMISSION_TIMEOUT_S", 0.05)
    await broker.hset(session_key("s"), "owner", "one:abc")
    with pytest.raises(NoEngineError):
        await change_mode(broker)


async def test_a_session_that_waits_takes_its_mode_when_it_is_heard_again(broker: Redis) -> None:
    await beat(broker, replace(STATUS, modes_ms=(160, 560)))
    await broker.hset(session_key("s"), "owner", "")
    assert await change_mode(broker, 560) is None
    assert await broker.exists(commands_key("one")) == 0
    with pytest.raises(UnsupportedModeError):
        await change_mode(broker, 1120)


async def test_a_session_between_two_engines_changes_no_mode(broker: Redis) -> None:
    """Its successor may have read the old one already."""
    await beat(broker, replace(STATUS, modes_ms=(160, 560)))
    await broker.sadd(SESSIONS_KEY, "s")
    with pytest.raises(NoEngineError):
        await change_mode(broker)
