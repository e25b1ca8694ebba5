"""This process's connections to the broker and the audio server, one set per event loop.

Sockets share them: the first one opens them, the last one closes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from redis.asyncio import BlockingConnectionPool, Redis

from asr_engine.protocol import ViewerEvent, captions_channel, encode, session_key
from transcription.feeds.fanout import Fanout
from transcription.feeds.places import Places
from transcription.feeds.publisher import AudioPublisher
from webapp.config import site_settings

BROKER_CONNECTIONS: Final = 64
"""Admissions wait on one each; more of them queue."""
AUDIO_CONNECTIONS: Final = 8
"""The publisher needs one, backlog checks share the rest."""


@dataclass(slots=True)
class Links:
    """Usable in the event loop that opened them."""

    broker: Redis
    publisher: AudioPublisher
    fanout: Fanout
    audio: Redis
    places: Places
    users: int = 0

    async def announce(self, event: ViewerEvent) -> None:
        """Tell every viewer of the session. Raises RedisError."""
        await self.broker.publish(captions_channel(event.session), encode(event))

    async def is_paused(self, session: str) -> bool:
        """Raises RedisError."""
        return await self.broker.hget(session_key(session), "is_paused") == b"1"

    async def set_paused(self, session: str, *, is_paused: bool) -> None:
        """Remember it for readers who come later, and tell those who are there."""
        value = "1" if is_paused else "0"
        await self.broker.hset(session_key(session), "is_paused", value)
        state = "paused" if is_paused else "live"
        await self.announce(ViewerEvent(type="state", session=session, state=state))

    async def close(self) -> None:
        await self.fanout.close()
        await self.places.close()
        await self.publisher.drain()
        await self.broker.aclose()
        await self.audio.aclose()


_links: WeakKeyDictionary[asyncio.AbstractEventLoop, Links] = WeakKeyDictionary()


def _connect(url: str, connections: int) -> Redis:
    # redis-py's own timeout of 5 s is shorter than a blocking read may take.
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=connections,
        timeout=10,
        socket_timeout=30,
        health_check_interval=15,
    )
    return Redis.from_pool(pool)


@asynccontextmanager
async def shared_links() -> AsyncIterator[Links]:
    loop = asyncio.get_running_loop()
    links = _links.get(loop)
    if links is None:
        settings = site_settings()
        broker = _connect(settings.broker_url, BROKER_CONNECTIONS)
        audio = _connect(settings.audio_url, AUDIO_CONNECTIONS)
        links = Links(broker, AudioPublisher(audio), Fanout(broker), audio, Places(broker))
        _links[loop] = links
    links.users += 1
    try:
        yield links
    finally:
        links.users -= 1
        if links.users == 0:
            del _links[loop]
            await links.close()
