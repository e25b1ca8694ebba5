"""One conversation of two sockets, whatever they do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from tests.fakes.live import hello
from transcription.realtime.two_channels import by_channels

Message = dict[str, Any]
READY = {"type": "ready", "sample": 0, "next_sample": 0}


class Conversation:
    """The client's side of an application in memory."""

    def __init__(self, application: Any) -> None:
        self.said: asyncio.Queue[Message] = asyncio.Queue()
        self.heard: asyncio.Queue[Message] = asyncio.Queue()
        work = by_channels(application)({}, self.said.get, self.heard.put)
        self.task = asyncio.get_running_loop().create_task(work)
        self.said.put_nowait({"type": "websocket.connect"})

    def say(self, **message: Any) -> None:
        self.said.put_nowait({"type": "websocket.receive", "text": json.dumps(message)})

    def leave(self) -> None:
        self.said.put_nowait({"type": "websocket.disconnect", "code": 1001})

    async def hear(self) -> Any:
        """The next event, or the code of the close."""
        async with asyncio.timeout(20):
            message = await self.heard.get()
            while message["type"] == "websocket.accept":
                message = await self.heard.get()
        return json.loads(message["text"]) if "text" in message else message["code"]

    async def end(self) -> None:
        async with asyncio.timeout(20):
            await self.task


Side = Callable[[int, Callable[[Message], Awaitable[None]]], Awaitable[None]]


def sides(after_hello: Side) -> tuple[Any, list[list[Message]]]:
    """An application that accepts, runs `after_hello` for each channel, and hears until the end;
    what each channel heard after its hello."""
    heard: list[list[Message]] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        async def say(event: Message) -> None:
            await send({"type": "websocket.send", "text": json.dumps(event)})

        assert (await receive())["type"] == "websocket.connect"
        await send({"type": "websocket.accept"})
        greeting = json.loads((await receive())["text"])
        channel = int(greeting["capture_id"].rsplit("-", 1)[1])
        own: list[Message] = []
        heard.append(own)
        await after_hello(channel, say)
        while (message := await receive())["type"] != "websocket.disconnect":
            own.append(message)

    return application, heard


async def test_what_one_side_says_early_comes_after_ready() -> None:
    both_greeted = asyncio.Event()

    async def after_hello(channel: int, say: Any) -> None:
        if channel == 0:
            await say(READY | {"session": "a"})
            await say({"type": "state", "session": "a", "state": "live"})
            both_greeted.set()
        else:
            await both_greeted.wait()
            await say(READY | {"session": "b", "sample": 5})

    application, _ = sides(after_hello)
    call = Conversation(application)
    call.say(**hello(channels=2))
    assert await call.hear() == READY | {"sessions": ["a", "b"]}
    state = await call.hear()
    assert (state["type"], state["channel"], state["speaker"]) == ("state", 0, "Speaker 1")
    call.leave()
    await call.end()


async def test_a_side_that_fails_closes_the_call() -> None:
    async def after_hello(channel: int, say: Any) -> None:
        await say(READY | {"session": str(channel)})
        if channel == 1:
            raise RuntimeError("a decoder's own words")

    application, _ = sides(after_hello)
    call = Conversation(application)
    call.say(**hello(channels=2))
    assert (await call.hear())["type"] == "ready"
    assert await call.hear() == 4503
    call.say(type="stop", sample=0)  # on its way when the server closed
    call.leave()
    await call.end()
    assert call.heard.empty()


async def test_both_sides_hear_that_the_client_has_gone() -> None:
    async def after_hello(channel: int, say: Any) -> None:
        await say(READY | {"session": str(channel)})

    application, heard = sides(after_hello)
    call = Conversation(application)
    call.say(**hello(channels=2))
    await call.hear()
    call.say(type="stop", sample=0)
    call.leave()
    await call.end()
    assert [len(own) for own in heard] == [1, 1]
    assert call.heard.empty()


async def test_one_channel_is_handed_through_as_it_is() -> None:
    texts: list[str] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        while (message := await receive())["type"] != "websocket.disconnect":
            texts.append(message["text"])

    call = Conversation(application)
    call.say(**hello())
    call.say(type="stop", sample=0)
    call.leave()
    await call.end()
    assert [json.loads(text)["type"] for text in texts] == ["hello", "stop"]
