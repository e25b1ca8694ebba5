"""Two engine processes on real servers: kill -9 loses nothing and doubles nothing."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Callable

from asr_engine import client
from asr_engine.audio import FloatSamples
from asr_engine.backends.scripted import encode_blocks, script, script_text
from asr_engine.protocol import AudioEntryKind, EngineEventKind, session_key
from tests.asr_engine.worker.conftest import Servers, eventually

StartProcess = Callable[[str], "subprocess.Popen[bytes]"]
SESSIONS = [f"s{index}" for index in range(5)]


async def beats(servers: Servers, name: str) -> None:
    async def is_there() -> bool:
        return any(item.engine == name for item in await client.engine_statuses(servers.broker))

    await eventually(is_there)


async def open_all(servers: Servers) -> None:
    for session in SESSIONS:
        await client.request_stream(servers.broker, session=session, language=None, mode_ms=0)


async def speak_all(servers: Servers, part: Callable[[FloatSamples], FloatSamples]) -> None:
    for index, session in enumerate(SESSIONS):
        await servers.speak(session, part(encode_blocks(spoken(index))))


def spoken(index: int) -> list[int | None]:
    return script(32, first=1000 * index)


async def check_all(servers: Servers) -> None:
    for index, session in enumerate(SESSIONS):
        await servers.mark(session, AudioEntryKind.END)
        await servers.wait_for(session, EngineEventKind.ENDED)
        finals = await servers.finals(session)
        assert [final.utterance for final in finals] == list(range(4))
        assert await servers.text(session) == script_text(spoken(index))


async def kill_in_the_middle(servers: Servers, process: subprocess.Popen[bytes]) -> None:
    await open_all(servers)
    await speak_all(servers, lambda audio: audio[: len(audio) // 2])
    for session in SESSIONS:
        await servers.wait_for(session, EngineEventKind.FINAL)
    process.kill()
    process.wait()
    await speak_all(servers, lambda audio: audio[len(audio) // 2 :])


async def test_a_killed_engine_is_succeeded_by_its_own_restart(
    servers: Servers, start_process: StartProcess
) -> None:
    process = start_process("engine-1")
    await beats(servers, "engine-1")
    await kill_in_the_middle(servers, process)
    start_process("engine-1")
    await check_all(servers)
    assert await servers.broker.hget(session_key("s0"), "epoch") == b"2"


async def test_a_killed_engine_is_succeeded_by_a_standby(
    servers: Servers, start_process: StartProcess
) -> None:
    process = start_process("engine-1")
    await beats(servers, "engine-1")
    await open_all(servers)
    start_process("engine-2")
    await beats(servers, "engine-2")
    await kill_in_the_middle(servers, process)
    await check_all(servers)
    assert {final.epoch for final in await servers.finals("s0")} == {1, 2}


async def test_sigterm_ends_cleanly_and_leaves_nothing_owned(
    servers: Servers, start_process: StartProcess
) -> None:
    process = start_process("engine-1")
    await beats(servers, "engine-1")
    await open_all(servers)
    process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(process.wait, 20) == 0
    assert await client.engine_statuses(servers.broker) == []
    for session in SESSIONS:
        assert await servers.broker.hget(session_key(session), "owner") == b""
