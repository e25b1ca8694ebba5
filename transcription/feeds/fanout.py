"""Captions from the broker to this process's sockets: one subscription, many feeds.

A `Fanout` holds one pub/sub connection per event loop and hands each message to the feeds of its
session. A `Feed` is what one socket still has to send: every lasting event in order, but only the
newest of each kind that may be lost, so that a slow viewer never makes it grow.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from asr_engine.asyncio_tasks import end_tasks
from asr_engine.protocol import captions_channel

log = structlog.get_logger(__name__)

REPLACEABLE: Final = frozenset({"partial", "ack", "lag", "head"})
"""Kinds of which only the newest matters."""
MAX_LASTING: Final = 2000
"""Lasting events that a feed keeps for a socket that does not take them."""
SUBSCRIBE_TIMEOUT_S: Final = 5.0
RETRY_S: Final = 0.5
POLL_S: Final = 0.05
"""How long a new subscription may wait for a message of another one."""


@dataclass(frozen=True, slots=True)
class CaptionEvent:
    """A message of the captions channel: `text` is its JSON as it came, the rest for routing."""

    type: str
    text: str
    data: dict[str, Any]

    @property
    def seq(self) -> int:
        return int(self.data.get("seq", 0))

    @classmethod
    def parse(cls, raw: bytes) -> CaptionEvent:
        text = raw.decode()
        data = json.loads(text)
        return cls(data["type"], text, data)


class Feed:
    """Belongs to one event loop; `offer` is called by the fan-out, `take` by the socket's task."""

    def __init__(self) -> None:
        self._lasting: deque[CaptionEvent] = deque()
        self._newest: dict[str, CaptionEvent] = {}
        self._wakeup = asyncio.Event()
        self.is_overflowing = False

    def offer(self, event: CaptionEvent) -> None:
        if event.type in REPLACEABLE:
            self._newest[event.type] = event
        elif len(self._lasting) >= MAX_LASTING:
            self.is_overflowing = True
        else:
            self._lasting.append(event)
            self._drop_partial_of(event)
        self._wakeup.set()

    def _drop_partial_of(self, event: CaptionEvent) -> None:
        """A partial is void once its utterance is final."""
        partial = self._newest.get("partial")
        if (
            event.type == "final"
            and partial is not None
            and partial.data["utterance"] <= event.data["utterance"]
        ):
            del self._newest["partial"]

    async def take(self) -> list[CaptionEvent]:
        """Wait for something; lasting events first, then the newest of the others.

        But before all an acknowledgement: after `closed` nobody listens for what is on disk.
        """
        await self._wakeup.wait()
        self._wakeup.clear()
        acknowledged = self._newest.pop("ack", None)
        events = [*self._lasting, *self._newest.values()]
        if acknowledged is not None:
            events.insert(0, acknowledged)
        self._lasting.clear()
        self._newest.clear()
        return events


class Fanout:
    """One subscription of this event loop. What was published while the broker was away is lost:
    viewers see it by the next `head` and refetch."""

    def __init__(self, broker: Redis) -> None:
        self._broker = broker
        self._feeds: dict[str, set[Feed]] = {}
        self._confirmed: dict[str, asyncio.Event] = {}
        self._task: asyncio.Task[None] | None = None

    async def subscribe(self, session: str, feed: Feed) -> None:
        """From the return on, every message of the session reaches `feed`.

        Raises TimeoutError while the broker is away.
        """
        channel = captions_channel(session)
        self._feeds.setdefault(channel, set()).add(feed)
        confirmed = self._confirmed.setdefault(channel, asyncio.Event())
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        async with asyncio.timeout(SUBSCRIBE_TIMEOUT_S):
            await confirmed.wait()

    async def unsubscribe(self, session: str, feed: Feed) -> None:
        """Harmless for a feed that is not subscribed."""
        channel = captions_channel(session)
        feeds = self._feeds.get(channel, set())
        feeds.discard(feed)
        if not feeds:
            self._feeds.pop(channel, None)

    async def close(self) -> None:
        if self._task is not None:
            await end_tasks([self._task])
            self._task = None

    async def _run(self) -> None:
        while True:
            try:
                await self._listen()
            except (RedisError, OSError):
                log.warning("captions_subscription_lost")
            await asyncio.sleep(RETRY_S)

    async def _listen(self) -> None:
        """Only this task touches the connection: redis-py bears no second reader, and a command
        that finds the connection lost reads."""
        pubsub = self._broker.pubsub()
        channels: set[str] = set()
        for confirmed in self._confirmed.values():
            confirmed.clear()
        try:
            await pubsub.connect()  # type: ignore[no-untyped-call]
            while True:
                wanted = set(self._feeds)
                new, old = wanted - channels, channels - wanted
                channels = wanted
                for channel in self._confirmed.keys() - wanted:
                    del self._confirmed[channel]
                if old:
                    await pubsub.unsubscribe(*old)
                if new:
                    await pubsub.subscribe(*new)
                message = await pubsub.get_message(timeout=POLL_S)
                if message is not None:
                    self._deliver(message)
        finally:
            await pubsub.aclose()  # type: ignore[no-untyped-call]

    def _deliver(self, message: dict[str, Any]) -> None:
        channel = message["channel"].decode()
        if message["type"] == "subscribe" and channel in self._confirmed:
            self._confirmed[channel].set()
        elif message["type"] == "message":
            feeds = self._feeds.get(channel)
            if feeds:
                event = CaptionEvent.parse(message["data"])
                for feed in feeds:
                    feed.offer(event)
