"""A socket of two channels is two sockets of one behind it.

Each channel is a session with a stream of its own (docs/decisions/0018-a-call-is-two-sessions.md).
This takes the packets of one socket apart, hands each side to its own consumer, and makes one
conversation of what they say: `ready` and `ack` once for both, the rest with `channel` and
`speaker`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog

from asr_engine.asyncio_tasks import end_tasks
from asr_engine.errors import place_of
from asr_engine.protocol import PACKET_HEADER
from transcription.errors import InvalidInputError
from transcription.realtime import wire
from transcription.realtime.encodings import split_channels

log = structlog.get_logger(__name__)

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]

CHANNELS: Final = wire.MAX_CHANNELS
MAX_TITLE_CHARACTERS: Final = 190
"""Of `hello`, so that a speaker's name behind it fits."""


def by_channels(application: Application) -> Any:
    """`application` for one channel, and twice for who says hello with two.

    Any, as Channels' own applications are: Django's types of addresses know HTTP alone.
    """

    async def run(scope: Any, receive: Receive, send: Send) -> None:
        await _Conversation(application, scope, receive, send).run()

    return run


class _Conversation:
    """One socket. Begins as one channel; `hello` says whether there is another."""

    def __init__(self, application: Application, scope: Any, receive: Receive, send: Send) -> None:
        self._application = application
        self._scope = scope
        self._client_receive = receive
        self._client_send = send
        self._hello: wire.Hello | None = None
        self._queues = [asyncio.Queue[Message]() for _ in range(CHANNELS)]
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready: list[Message | None] = [None] * CHANNELS
        self._samples = [0] * CHANNELS
        self._is_done = [False] * CHANNELS
        self._is_closed = False
        self._early: list[Message] = []
        """What one side said before both had a place."""
        self._next_message: Receive = self._decide
        """Where the first channel's messages come from."""

    async def run(self) -> None:
        try:
            await self._application(self._scope, self._receive, self._send_first)
        finally:
            if self._tasks:
                # The client has gone, or was sent away: the other channel hears of it as well.
                self._queues[1].put_nowait({"type": "websocket.disconnect", "code": 1001})
                second = [task for task in self._tasks if task.get_name() == "second"]
                await asyncio.wait(second, timeout=30)
                await end_tasks(self._tasks)

    # In ---------------------------------------------------------------------------------------

    async def _receive(self) -> Message:
        return await self._next_message()

    async def _decide(self) -> Message:
        message = await self._client_receive()
        if message["type"] != "websocket.receive":
            return message
        hello = _two_channel_hello(message)
        if hello is None:
            self._next_message = self._client_receive
            return message
        self._hello = hello
        self._next_message = self._queues[0].get
        self._queues[1].put_nowait({"type": "websocket.connect"})
        self._start(self._run_second(), "second")
        for channel, queue in enumerate(self._queues):
            queue.put_nowait(_text(self._hello_of(channel, json.loads(message["text"]))))
        self._start(self._take_apart(), "pump")
        return await self._queues[0].get()

    def _hello_of(self, channel: int, data: Message) -> Message:
        assert self._hello is not None  # noqa: S101  # for the type checker
        hello = self._hello
        return data | {
            "channels": 1,
            "capture_id": f"{hello.capture_id[:62]}-{channel}",
            "title": hello.title[:MAX_TITLE_CHARACTERS],
            "session": "",
            "sessions": list(hello.sessions[channel : channel + 1]),
            "speakers": [self._speaker(channel)],
        }

    def _speaker(self, channel: int) -> str:
        assert self._hello is not None  # noqa: S101  # for the type checker
        names = self._hello.speakers
        return names[channel] if names and names[channel] else f"Speaker {channel + 1}"

    async def _run_second(self) -> None:
        try:
            await self._application(
                dict(self._scope), self._queues[1].get, lambda message: self._send_of(1, message)
            )
        except Exception as error:  # noqa: BLE001 - as at the border of every socket
            log.error(  # noqa: TRY400 - no traceback, which could quote what was said
                "socket_failed", error=type(error).__name__, place=place_of(error)
            )
        if not self._is_done[1]:  # the other must not go on as if both were heard
            close = {"type": "websocket.close", "code": int(wire.CloseCode.TRY_LATER)}
            await self._close(1, close)

    async def _take_apart(self) -> None:
        has_left = False
        while not has_left:
            message = await self._client_receive()
            if message["type"] == "websocket.disconnect":
                has_left = self._is_closed = True
            for channel, part in enumerate(self._parts(message)):
                if part is not None:
                    self._queues[channel].put_nowait(part)

    def _parts(self, message: Message) -> list[Message | None]:
        data = message.get("bytes")
        if data is not None:
            return [{**message, "bytes": part} for part in self._split(data)]
        if message.get("text") is not None:
            channel = _channel_of(message["text"])
            if channel is not None:
                return [message if each == channel else None for each in range(CHANNELS)]
        return [message] * CHANNELS

    def _split(self, data: bytes) -> tuple[bytes, bytes]:
        """What is no header with whole samples of both sides goes on as nothing, to be refused."""
        assert self._hello is not None  # noqa: S101  # for the type checker
        header, payload = data[: PACKET_HEADER.size], data[PACKET_HEADER.size :]
        if len(payload) % (CHANNELS * self._hello.audio.sample_bytes):
            return b"", b""
        left, right = split_channels(payload, self._hello.audio)
        return header + left, header + right

    # Out --------------------------------------------------------------------------------------

    async def _send_first(self, message: Message) -> None:
        if self._hello is None:
            await self._client_send(message)
        else:
            await self._send_of(0, message)

    async def _send_of(self, channel: int, message: Message) -> None:
        if self._is_closed or message["type"] == "websocket.accept":
            return
        if message["type"] == "websocket.close":
            await self._close(channel, message)
            return
        event = json.loads(message["text"])
        match event["type"]:
            case "ready" if self._ready[channel] is None:
                self._ready[channel] = event
                self._samples[channel] = event["sample"]
                await self._tell_ready()
            case "ack":
                before = min(self._samples)
                self._samples[channel] = event["sample"]
                if min(self._samples) > before:
                    await self._tell({"type": "ack", "sample": min(self._samples)})
            case _:
                event |= {"channel": channel, "speaker": self._speaker(channel)}
                if None in self._ready and event["type"] != "error":
                    self._early.append(event)
                else:
                    await self._tell(event)

    async def _tell_ready(self) -> None:
        first, second = self._ready
        if first is None or second is None:
            return
        each = (first, second)
        ready = {name: value for name, value in first.items() if name not in {"session", "seq"}}
        ready["sessions"] = [event["session"] for event in each]
        ready["sample"] = min(event["sample"] for event in each)
        ready["next_sample"] = max(event["next_sample"] for event in each)
        await self._tell(ready)
        for event in self._early:
            await self._tell(event)

    async def _close(self, channel: int, message: Message) -> None:
        """After `stop` when both have ended; where one is refused, at once."""
        if self._is_closed:
            return
        self._is_done[channel] = True
        is_normal = message.get("code") == wire.CloseCode.NORMAL
        if is_normal and not all(self._is_done):
            return
        if not is_normal and None in self._ready:
            # The other may have a place already, which nobody will speak into.
            self._queues[1 - channel].put_nowait(_text({"type": "stop", "sample": 0}))
        self._is_closed = True
        await self._client_send(message)

    async def _tell(self, event: Message) -> None:
        await self._client_send({"type": "websocket.send", "text": wire.dump(event)})

    def _start(self, work: Any, name: str) -> None:
        self._tasks.add(asyncio.get_running_loop().create_task(work, name=name))


def _two_channel_hello(message: Message) -> wire.Hello | None:
    """None for anything else, also for what is wrong: the socket of one channel says why."""
    try:
        hello = wire.parse_message(message.get("text") or "")
    except InvalidInputError:
        return None
    return hello if isinstance(hello, wire.Hello) and hello.channels == CHANNELS else None


def _channel_of(text: str) -> int | None:
    """Of a message for one side alone. None for both, and for what a socket will refuse."""
    if len(text) > wire.MAX_MESSAGE_CHARACTERS:
        return None
    try:
        channel = json.loads(text).get("channel")
    except (ValueError, AttributeError):
        return None
    return channel if channel in range(CHANNELS) and not isinstance(channel, bool) else None


def _text(event: Message) -> Message:
    return {"type": "websocket.receive", "text": json.dumps(event)}
