"""Engine services on the suite's own servers, in databases that no other test uses."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from redis.asyncio import Redis

from asr_engine import client
from asr_engine.audio import FloatSamples, float_to_pcm16
from asr_engine.protocol import (
    EVENTS_KEY,
    AudioEntry,
    AudioEntryKind,
    EngineEvent,
    EngineEventKind,
    audio_key,
    decode_engine_event,
    whole_key,
)
from asr_engine.streaming import Engine
from asr_engine.worker.connections import connect
from asr_engine.worker.service import EngineService, ModelThreadError

BROKER_URL = os.environ["TRANSCRIBE_BROKER_URL"].removesuffix("/0") + "/7"
AUDIO_URL = os.environ["TRANSCRIBE_AUDIO_URL"].removesuffix("/0") + "/7"
ROOT = Path(__file__).resolve().parents[3]
PACKET_SAMPLES = 3200


async def eventually(condition: Callable[[], Awaitable[object]], *, within_s: float = 30) -> None:
    """Return once `condition` holds."""
    async with asyncio.timeout(within_s):
        while not await condition():  # noqa: ASYNC110 -- the other side is a server
            await asyncio.sleep(0.01)


@dataclass
class Servers:
    """The broker and the audio server, and what tests do with them."""

    broker: Redis
    audio: Redis
    sent_samples: dict[str, int] = field(default_factory=dict)

    async def speak(self, session: str, samples: FloatSamples) -> None:
        """Send `samples` after what was sent before, in packets of 200 ms."""
        first = self.sent_samples.get(session, 0)
        pipe = self.audio.pipeline(transaction=False)
        for start in range(0, len(samples), PACKET_SAMPLES):
            payload = float_to_pcm16(samples[start : start + PACKET_SAMPLES])
            entry = AudioEntry(AudioEntryKind.AUDIO, first + start, payload)
            pipe.xadd(audio_key(session), entry.as_fields())
        pipe.set(whole_key(session), "1")  # as the recorder says of what needs nothing from disk
        await pipe.execute()
        self.sent_samples[session] = first + len(samples)

    def skip(self, session: str, samples: int) -> None:
        """Let time pass in which nothing is sent."""
        self.sent_samples[session] = self.sent_samples.get(session, 0) + samples

    async def mark(self, session: str, kind: AudioEntryKind) -> None:
        entry = AudioEntry(kind, self.sent_samples.get(session, 0))
        await self.audio.xadd(audio_key(session), entry.as_fields())

    async def events(self, session: str) -> list[EngineEvent]:
        entries = await self.broker.xrange(EVENTS_KEY)
        events = [decode_engine_event(fields[b"e"]) for _id, fields in entries]
        return [event for event in events if event.session == session]

    async def kinds(self, session: str) -> list[EngineEventKind]:
        return [event.kind for event in await self.events(session)]

    async def wait_for(self, session: str, kind: EngineEventKind, *, count: int = 1) -> None:
        async def has_come() -> bool:
            return (await self.kinds(session)).count(kind) >= count

        await eventually(has_come)

    async def finals(self, session: str) -> list[EngineEvent]:
        return [
            event for event in await self.events(session) if event.kind is EngineEventKind.FINAL
        ]

    async def text(self, session: str) -> str:
        return " ".join(event.text for event in await self.finals(session))


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    broker, audio = connect(BROKER_URL), connect(AUDIO_URL)
    await broker.flushdb()
    await audio.flushdb()
    yield Servers(broker, audio)
    await broker.aclose()
    await audio.aclose()


StartService = Callable[..., Awaitable["RunningService"]]


@dataclass
class RunningService:
    """A service in this process; `stop` leaves as SIGTERM does."""

    stopping: asyncio.Event
    task: asyncio.Task[None]

    async def stop(self) -> None:
        self.stopping.set()
        await self.task


@asynccontextmanager
async def _running(servers: Servers, engine: Engine, name: str) -> AsyncIterator[RunningService]:
    broker, audio = connect(BROKER_URL), connect(AUDIO_URL)
    service = EngineService(
        engine, name=name, incarnation=os.urandom(4).hex(), broker=broker, audio=audio
    )
    stopping = asyncio.Event()
    task = asyncio.create_task(service.run(stopping))
    running = RunningService(stopping, task)

    async def beats() -> bool:
        return any(item.engine == name for item in await client.engine_statuses(servers.broker))

    try:
        await eventually(beats)
        yield running
    finally:
        with suppress(ModelThreadError):  # where a test made it fail
            await running.stop()
        await broker.aclose()
        await audio.aclose()


@pytest.fixture
async def start_service(servers: Servers) -> AsyncIterator[StartService]:
    """Start a service for an engine; all are stopped after the test."""
    async with AsyncExitStack() as stack:

        async def start(engine: Engine, name: str = "engine-1") -> RunningService:
            return await stack.enter_async_context(_running(servers, engine, name))

        yield start


@pytest.fixture
def start_process() -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Start `python -m asr_engine.worker` under a name; all are killed after the test."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str) -> subprocess.Popen[bytes]:
        environment = os.environ | {
            "ASR_NAME": name,
            "ASR_BROKER_URL": BROKER_URL,
            "ASR_AUDIO_URL": AUDIO_URL,
            "ASR_LIVE_BACKEND": "scripted",
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "asr_engine.worker"],
            env=environment,
            cwd=ROOT,
            stderr=subprocess.DEVNULL,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()
