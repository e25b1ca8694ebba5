"""A page's side of the live sockets, and an engine played by hand through the protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import redis
from channels.testing import WebsocketCommunicator
from django.test import Client
from redis.asyncio import Redis

from asr_engine import client, protocol
from asr_engine.audio import FloatSamples, float_to_pcm16
from asr_engine.protocol import EngineEvent, EngineEventKind, Packet, ViewerEvent
from tests.fakes.people import PASSWORD
from transcription.models import LiveSession, Visibility
from transcription.services import live_sessions
from webapp.accounts.models import User
from webapp.asgi import application
from webapp.config import site_settings

PATIENCE_S = 60
"""A busy machine is slow; only a fault waits this long."""


def make_session(owner: User, **fields: Any) -> LiveSession:
    values: dict[str, Any] = {
        "title": "Weekly meeting",
        "language": "en",
        "mode_ms": 0,
        "visibility": Visibility.PRIVATE,
        **fields,
    }
    return live_sessions.create_live_session(owner=owner, **values)


def log_in(person: User) -> Client:
    client = Client()
    assert client.login(email=person.email, password=PASSWORD)
    return client


def hello(capture_id: str = "capture-one", **members: Any) -> dict[str, Any]:
    return {
        "type": "hello",
        "version": 1,
        "capture_id": capture_id,
        "sample_rate": 16000,
        "encoding": "pcm16",
        "language": "",
        "mode_ms": 0,
        "take_over": False,
        **members,
    }


class Page:
    """One WebSocket to the real application."""

    def __init__(self, path: str, client: Client | None, origin: str = "http://localhost") -> None:
        headers = [(b"host", b"localhost")]
        if origin:
            headers.append((b"origin", origin.encode()))
        if client is not None:
            cookie = f"sessionid={client.cookies['sessionid'].value}"
            headers.append((b"cookie", cookie.encode()))
        self.socket = WebsocketCommunicator(application, path, headers=headers)
        self.sequence = 0
        self.ready: dict[str, Any] = {}

    async def connect(self) -> bool:
        is_accepted, _ = await self.socket.connect(timeout=PATIENCE_S)
        return bool(is_accepted)

    async def say(self, **message: Any) -> None:
        await self.socket.send_to(text_data=json.dumps(message))

    async def speak(self, first_sample: int, pcm: bytes) -> None:
        packet = Packet(self.sequence, first_sample, pcm)
        self.sequence += 1
        await self.socket.send_to(bytes_data=protocol.pack_packet(packet))

    async def hear(self, kind: str, where: Callable[[dict[str, Any]], bool] | None = None) -> Any:
        """The next event of `kind`; others before it are dropped."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                message = await self.socket.receive_output(timeout=PATIENCE_S)
                assert message["type"] == "websocket.send", message
                event = json.loads(message["text"])
                if event["type"] == kind and (where is None or where(event)):
                    return event

    async def closing(self) -> tuple[int, dict[str, Any] | None]:
        """The close code, and the last `error` before it."""
        error = None
        async with asyncio.timeout(PATIENCE_S):
            while True:
                message = await self.socket.receive_output(timeout=PATIENCE_S)
                if message["type"] == "websocket.close":
                    return message["code"], error
                event = json.loads(message["text"])
                if event["type"] == "error":
                    error = event

    async def leave(self) -> None:
        await self.socket.disconnect(timeout=PATIENCE_S)


@asynccontextmanager
async def servers() -> AsyncIterator[tuple[Redis, Redis]]:
    settings = site_settings()
    broker = Redis.from_url(settings.broker_url)
    audio = Redis.from_url(settings.audio_url)
    try:
        yield broker, audio
    finally:
        await broker.aclose()
        await audio.aclose()


async def publish(event: ViewerEvent) -> None:
    async with servers() as (broker, _):
        channel = protocol.captions_channel(event.session)
        await broker.publish(channel, protocol.encode(event))


def final(session: LiveSession, utterance: int, text: str, start_ms: int = 0) -> EngineEvent:
    return EngineEvent(
        kind=EngineEventKind.FINAL,
        session=str(session.id),
        epoch=1,
        utterance=utterance,
        start_ms=start_ms or utterance * 1000,
        end_ms=(start_ms or utterance * 1000) + 900,
        text=text,
        words=({"text": text, "start_ms": 0, "end_ms": 900},),
        reason="silence",
    )


def put_on_disk(session: LiveSession, samples: FloatSamples) -> None:
    """As the recorder does: the session's audio up to here, acknowledged."""
    session.folder.mkdir(parents=True, exist_ok=True)
    session.pcm_path.write_bytes(float_to_pcm16(samples))
    with redis.Redis.from_url(site_settings().broker_url) as broker:
        broker.hset(protocol.session_key(str(session.id)), "acknowledged_sample", len(samples))


ENGINE_NAME = "hand"
ENGINE_MODES_MS = (160, 560)
UNKNOWN_LANGUAGE = "yo"


@asynccontextmanager
async def engine_by_hand(slots: int = 20) -> AsyncIterator[list[protocol.Command]]:
    """An engine that admits up to `slots` sessions, changes their latency modes and languages, and
    says nothing; yields what it was asked."""
    commands: list[protocol.Command] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "ADMISSION_TIMEOUT_S", PATIENCE_S / 3)
        async with _engine(slots, commands):
            yield commands


@asynccontextmanager
async def _engine(slots: int, commands: list[protocol.Command]) -> AsyncIterator[None]:
    async with servers() as (broker, _):
        await broker.delete(protocol.commands_key(ENGINE_NAME))
        await broker.sadd(protocol.ENGINES_KEY, ENGINE_NAME)
        status = protocol.EngineStatus(
            ENGINE_NAME, "hand", (), False, ENGINE_MODES_MS, 160, slots, slots, False, 0.0
        )
        await broker.set(protocol.engine_key(ENGINE_NAME), protocol.encode(status))
        task = asyncio.create_task(_admit(broker, slots, commands))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await broker.delete(protocol.engine_key(ENGINE_NAME))


async def _admit(broker: Redis, slots: int, commands: list[protocol.Command]) -> None:
    last_id: str | bytes = "0"
    admitted: set[str] = set()
    while True:
        answer = await broker.xread({protocol.commands_key(ENGINE_NAME): last_id}, block=5000)
        for entry_id, fields in answer[0][1] if answer else []:
            last_id = entry_id
            command = protocol.decode_command(fields[b"c"])
            commands.append(command)
            if command.kind == "set_mode" and command.mode_ms not in ENGINE_MODES_MS:
                reply = protocol.Reply(False, ENGINE_NAME, code="unsupported_mode", reason="No.")
            elif command.kind == "set_language" and command.language == UNKNOWN_LANGUAGE:
                reply = protocol.Reply(
                    False, ENGINE_NAME, code="unsupported_language", reason="No."
                )
            elif command.session in admitted or len(admitted) < slots:
                admitted.add(command.session)
                await broker.hset(protocol.session_key(command.session), "owner", ENGINE_NAME)
                mode_ms = command.mode_ms or 160
                packet_ms = 160 if mode_ms == 160 else 200
                reply = protocol.Reply(
                    True, ENGINE_NAME, 1, mode_ms, packet_ms, modes_ms=ENGINE_MODES_MS
                )
            else:
                reply = protocol.Reply(
                    False, ENGINE_NAME, code="no_free_slot", reason="All live places are taken."
                )
            await broker.rpush(protocol.reply_key(command.request), protocol.encode(reply))
