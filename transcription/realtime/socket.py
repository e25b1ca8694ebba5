"""What every live socket does: captions out, history, and reading messages and packets."""

from __future__ import annotations

import asyncio
import time
from typing import Any, ClassVar, Final

from channels.db import database_sync_to_async

from asr_engine.protocol import members_of
from transcription import broadcast, selectors
from transcription.errors import (
    InvalidInputError,
    NotAuthenticatedError,
    TooFastError,
    TryLaterError,
)
from transcription.feeds.fanout import CaptionEvent, Feed
from transcription.feeds.links import Links, shared_links
from transcription.models import LiveSession
from transcription.realtime import wire
from transcription.realtime.allowance import message_bucket
from transcription.realtime.border import ProductSocket
from transcription.realtime.cookies import user_of_cookie
from transcription.services.caption_history import history_after
from webapp.accounts.models import User

TICK_S: Final = 3.0
"""Between two looks at leases and backlog."""


class LiveSocket(ProductSocket):
    """Base of the captions, capture and stream sockets.

    Subclasses say what a message or packet does (`on_message`, `on_packet`), and what they pass on
    of the session's events (`on_event`).
    """

    def __init__(self) -> None:
        super().__init__()
        self.feed = Feed()
        self._messages = message_bucket(time.monotonic())

    # What subclasses are ----------------------------------------------------------------------

    async def on_message(self, message: wire.ClientMessage) -> None:
        """May raise ProductError, EngineError."""
        raise InvalidInputError("This socket does not take that message.")

    async def on_packet(self, data: bytes) -> None:
        """May raise ProductError, EngineError."""
        raise InvalidInputError("This socket takes no audio.")

    async def on_event(self, event: CaptionEvent) -> None:
        """Pass on, or act on, an event of the session."""
        await self.send(text_data=event.text)

    async def on_tick(self) -> None:
        """Every TICK_S. May raise ProductError, EngineError, RedisError."""

    def fetch_session(self) -> LiveSession:
        """Read the session if this socket may still have it. Synchronous: database.

        Raises NotFoundError, NotAuthenticatedError.
        """
        raise NotImplementedError

    # In ---------------------------------------------------------------------------------------

    async def on_connect(self) -> None:
        await super().on_connect()
        self.links: Links = await self._resources.enter_async_context(shared_links())
        self.start(self._tick())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self.is_closing:
            return
        if text_data is not None:
            await self.guard(self._receive_text(text_data))
        elif bytes_data is not None:
            await self.guard(self.on_packet(bytes_data))

    async def _receive_text(self, text: str) -> None:
        if not self._messages.take(1, time.monotonic()):
            raise TooFastError
        await self.on_message(wire.parse_message(text))

    async def _tick(self) -> None:
        while not self.is_closing:
            await asyncio.sleep(TICK_S)
            await self.on_tick()

    # Out --------------------------------------------------------------------------------------

    async def follow(self) -> None:
        """Subscribe to the session's events; they wait in the feed until `pass_on` runs."""
        self.at_end(self.links.fanout.unsubscribe, self.session_id, self.feed)
        await self.links.fanout.subscribe(self.session_id, self.feed)

    async def pass_on(self) -> None:
        """Send what comes, as long as the socket lives."""
        while not self.is_closing:
            for event in await self.feed.take():
                await self.on_event(event)
            if self.feed.is_overflowing:
                raise TryLaterError("Your connection is too slow for these captions.")

    async def send_history(self, after_seq: int) -> int:
        """Stored changes after `after_seq` in batches, then a `head`. Returns its `seq`."""
        read_history = database_sync_to_async(self._read_history)
        session, events = await read_history(after_seq)
        for start in range(0, len(events), wire.HISTORY_BATCH):
            batch = events[start : start + wire.HISTORY_BATCH]
            await self.say(wire.history_event(self.session_id, batch))
        await self.say({"type": "head", "session": self.session_id, "seq": session.last_seq})
        last_seq: int = session.last_seq
        return last_seq

    def _read_history(self, after_seq: int) -> tuple[LiveSession, list[dict[str, Any]]]:
        session = self.fetch_session()
        return session, [members_of(event) for event in history_after(session, after_seq)]

    # Rights -----------------------------------------------------------------------------------

    async def follow_rights(self, user: User) -> None:
        """Hear of changes to the rights of `user`, and to those of everybody in this session."""
        await self.hear_group(broadcast.user_group(user.pk))
        await self.hear_group(broadcast.session_group(self.session_id))

    def check_rights(self) -> None:
        if self.session_id:  # a tool's socket has none before its hello
            self.fetch_session()

    async def current_session(self) -> LiveSession:
        """As the database has it now. Raises NotFoundError, NotAuthenticatedError."""
        session: LiveSession = await database_sync_to_async(self.fetch_session)()
        return session


class CookieSocket(LiveSocket):
    """A live socket of a page: its session is in the address, the person known by the cookie."""

    is_capturing: ClassVar[bool] = False

    async def on_connect(self) -> None:
        self.session_id = str(self.scope["url_route"]["kwargs"]["session_id"])
        user = self.scope["user"]
        if not user.is_authenticated:
            raise NotAuthenticatedError
        await self.follow_rights(user)
        await super().on_connect()

    def fetch_session(self) -> LiveSession:
        user = user_of_cookie(self.scope)
        if self.is_capturing:
            return selectors.access_own_live_session_by_id(user, self.session_id)
        return selectors.access_live_session_by_id(user, self.session_id)
