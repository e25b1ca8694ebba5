"""An engine taken out of service while people speak into it."""

from __future__ import annotations

import pytest
import structlog

from asr_engine import client
from asr_engine.audio import FloatSamples
from asr_engine.backends.scripted import (
    ScriptedDetector,
    ScriptedModel,
    encode_blocks,
    script,
    script_text,
)
from asr_engine.protocol import AudioEntryKind, EngineEventKind, EngineStatus, session_key
from asr_engine.streaming import Engine
from tests.asr_engine.worker.conftest import Servers, StartService, eventually

FINAL, ENDED = EngineEventKind.FINAL, EngineEventKind.ENDED


def engine(slots: int = 20) -> Engine:
    return Engine(ScriptedModel(slots=slots), ScriptedDetector())


async def open_session(servers: Servers, session: str) -> None:
    await client.request_stream(servers.broker, session=session, language="en", mode_ms=560)


async def drain(servers: Servers, name: str = "engine-1") -> None:
    await client.order_drain(servers.broker, name, is_draining=True)


async def status_of(servers: Servers, name: str) -> EngineStatus:
    statuses = await client.engine_statuses(servers.broker)
    return next(status for status in statuses if status.engine == name)


async def owner_of(servers: Servers, session: str) -> str:
    owner = await servers.broker.hget(session_key(session), "owner")
    return (owner or b"").decode().rpartition(":")[0]


async def wait_for_owner(servers: Servers, session: str, name: str) -> None:
    async def is_owner() -> bool:
        return await owner_of(servers, session) == name

    await eventually(is_owner)


async def wait_until_draining(servers: Servers, name: str = "engine-1") -> None:
    async def is_draining() -> bool:
        return (await status_of(servers, name)).is_draining

    await eventually(is_draining)


def halves(audio: FloatSamples) -> tuple[FloatSamples, FloatSamples]:
    return audio[: len(audio) // 2], audio[len(audio) // 2 :]


async def test_sessions_in_which_nobody_speaks_move_at_once_and_the_engine_is_empty(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(engine(), "engine-1")
    names = [f"s{index}" for index in range(5)]
    for name in names:
        await open_session(servers, name)
    await start_service(engine(), "engine-2")
    await drain(servers)
    for name in names:
        await wait_for_owner(servers, name, "engine-2")

    async def all_is_told() -> bool:
        drained, other = [await status_of(servers, name) for name in ("engine-1", "engine-2")]
        return drained.sessions == 0 and other.sessions == 5

    await eventually(all_is_told)
    status = await status_of(servers, "engine-1")
    assert (status.is_draining, status.free_slots) == (True, status.slots)


async def test_a_session_moves_at_its_endpoint_not_in_the_middle_of_an_utterance(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(engine(), "engine-1")
    await open_session(servers, "s")
    blocks = script(40)
    listener = servers.broker.pubsub()
    await listener.subscribe("live:s:captions")

    async def is_heard() -> bool:
        return bool(await listener.get_message(ignore_subscribe_messages=True, timeout=0.1))

    await servers.speak("s", encode_blocks([None] * 12 + [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]))
    await eventually(is_heard)
    await listener.aclose()
    await start_service(engine(), "engine-2")
    await drain(servers)
    await wait_until_draining(servers)
    assert await owner_of(servers, "s") == "engine-1"
    await servers.speak("s", encode_blocks([None] * 12))
    await wait_for_owner(servers, "s", "engine-2")
    assert [(item.epoch, item.text) for item in await servers.finals("s")] == [
        (1, "w1 w2 w3 w4 w5 w6 w7 w8 w9 w10")
    ]
    await servers.speak("s", encode_blocks(blocks))
    await servers.mark("s", AudioEntryKind.END)
    await servers.wait_for("s", ENDED)
    finals = await servers.finals("s")
    assert [final.utterance for final in finals] == list(range(len(finals)))
    assert {final.epoch for final in finals[1:]} == {2}
    assert await servers.text("s") == f"w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 {script_text(blocks)}"


async def test_draining_under_speech_loses_and_doubles_nothing(
    servers: Servers, start_service: StartService
) -> None:
    """Audio comes faster than real time, so that the moves fall anywhere in it."""
    await start_service(engine(), "engine-1")
    said = {f"s{index}": script(64, first=1000 * index) for index in range(6)}
    for name in said:
        await open_session(servers, name)
    await start_service(engine(), "engine-2")
    for name, blocks in said.items():
        await servers.speak(name, halves(encode_blocks(blocks))[0])
    await drain(servers)
    for name, blocks in said.items():
        await servers.speak(name, halves(encode_blocks(blocks))[1])
    for name in said:
        await wait_for_owner(servers, name, "engine-2")
        await servers.mark(name, AudioEntryKind.END)
    for name, blocks in said.items():
        await servers.wait_for(name, ENDED)
        finals = await servers.finals(name)
        assert [final.utterance for final in finals] == list(range(8))
        assert await servers.text(name) == script_text(blocks)


async def test_the_mode_moves_with_the_session(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(engine(), "engine-1")
    await open_session(servers, "s")
    await start_service(engine(), "engine-2")
    await drain(servers)
    await wait_for_owner(servers, "s", "engine-2")
    mode_ms, language = await servers.broker.hmget(session_key("s"), ["mode_ms", "language"])
    assert (mode_ms, language) == (b"560", b"en")


async def test_sessions_stay_while_no_other_engine_has_room_and_that_is_said(
    servers: Servers, start_service: StartService
) -> None:
    with structlog.testing.capture_logs() as logs:
        await start_service(engine(), "engine-1")
        await open_session(servers, "s")
        await drain(servers)

        async def is_said() -> bool:
            return any(entry["event"] == "no_other_engine_has_room" for entry in logs)

        await eventually(is_said)
    await servers.speak("s", encode_blocks(script(8)))
    await servers.wait_for("s", FINAL)
    assert await owner_of(servers, "s") == "engine-1"
    await start_service(engine(slots=1), "engine-2")
    await wait_for_owner(servers, "s", "engine-2")


async def test_as_many_move_as_the_other_engine_has_room_for(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(engine(), "engine-1")
    names = [f"s{index}" for index in range(4)]
    for name in names:
        await open_session(servers, name)
    await start_service(engine(slots=3), "engine-2")
    await drain(servers)

    async def three_have_moved() -> bool:
        return (await status_of(servers, "engine-2")).sessions == 3

    await eventually(three_have_moved)
    owners = [await owner_of(servers, name) for name in names]
    assert sorted(owners) == ["engine-1", "engine-2", "engine-2", "engine-2"]


async def test_an_engine_that_serves_again_takes_sessions(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(engine(), "engine-1")
    await drain(servers)
    await wait_until_draining(servers)
    await client.order_drain(servers.broker, "engine-1", is_draining=False)

    async def serves() -> bool:
        return not (await status_of(servers, "engine-1")).is_draining

    await eventually(serves)
    await open_session(servers, "s")
    assert await owner_of(servers, "s") == "engine-1"


@pytest.mark.parametrize("is_draining", [True, False])
async def test_a_draining_engine_takes_no_orphans(
    servers: Servers, start_service: StartService, is_draining: bool
) -> None:
    await start_service(engine(), "engine-1")
    if is_draining:
        await drain(servers)
        await wait_until_draining(servers)
    await servers.broker.hset(session_key("s"), mapping={"owner": "dead:1", "mode_ms": "160"})
    await servers.broker.sadd("live:sessions", "s")
    taker = "engine-1"
    if is_draining:
        await start_service(engine(), "engine-2")
        taker = "engine-2"
    await wait_for_owner(servers, "s", taker)
    assert await servers.broker.hget(session_key("s"), "epoch") == b"1"
