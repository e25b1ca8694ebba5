"""The socket of a reader: `/ws/v1/live/<session>/captions?after_seq=N`.

With `?by=link` nobody needs to be logged in: the first message shows the token of a link. With
`?as=speaker` the session's owner sees what readers see, is not counted as one, and is told how many
there are.
"""

from __future__ import annotations

import asyncio
import secrets
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from django.utils import timezone

from transcription import broadcast, selectors
from transcription.errors import InvalidInputError, NotAuthenticatedError, NotFoundError
from transcription.feeds.fanout import CaptionEvent
from transcription.feeds.limits import viewer_limits
from transcription.models import LiveSession, LiveState
from transcription.realtime import wire
from transcription.realtime.socket import CookieSocket, LiveSocket
from transcription.services import share_links
from transcription.services.readers import now_ms, readers_key
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act

FOR_THE_SPEAKER: Final = frozenset({"ack", "taken"})
LINK_TIMEOUT_S: Final = 10.0
"""How long a socket may wait before it shows its link."""


class CaptionsSocket(CookieSocket):
    """Subscribes first, then reads what is stored, then drops what came twice."""

    def __init__(self) -> None:
        super().__init__()
        self._token = ""
        self._is_by_link = False
        self._is_speaker = False
        self._told_readers = -1

    async def on_connect(self) -> None:
        self._is_by_link = self._query("by") == "link"
        if self._is_by_link:
            self.expect_introduction()
            self.session_id = str(self.scope["url_route"]["kwargs"]["session_id"])
            await LiveSocket.on_connect(self)
            self.start(self._wait_for_link())
        else:
            await super().on_connect()
            await self._begin()

    async def on_message(self, message: wire.ClientMessage) -> None:
        if isinstance(message, wire.ShowLink) and self._is_by_link and not self._token:
            await self._open_by_link(message.token)
        elif isinstance(message, wire.Refetch) and (self._token or not self._is_by_link):
            await self.send_history(message.after_seq)
        else:
            await super().on_message(message)

    async def on_event(self, event: CaptionEvent) -> None:
        is_in_history = 0 < event.seq <= self.head_seq and event.type != "head"
        if is_in_history or event.type in FOR_THE_SPEAKER:
            return
        if self._is_by_link and "recording" in event.data:
            # The recording is not what the link is for.
            await self.say({name: data for name, data in event.data.items() if name != "recording"})
        else:
            await super().on_event(event)

    async def on_tick(self) -> None:
        if not self._is_speaker:
            return
        count = await self.links.broker.zcount(readers_key(self.session_id), now_ms(), "+inf")
        if count != self._told_readers:
            self._told_readers = count
            await self.say(wire.readers_event(self.session_id, count))

    def fetch_session(self) -> LiveSession:
        if not self._is_by_link:
            return super().fetch_session()
        session = selectors.access_caption_link_by_token(self._token).live_session
        if str(session.id) != self.session_id:
            raise NotFoundError
        return session

    async def _open_by_link(self, token: str) -> None:
        if not token:
            raise InvalidInputError("The message has no token.")
        # Subscribed before the check: a link that is withdrawn meanwhile is heard.
        await self.hear_group(broadcast.links_group(self.session_id))
        open_link = database_sync_to_async(share_links.open_caption_link)
        address = (self.scope.get("client") or ("",))[0]
        link = await open_link(token=token, address=address)
        self._token = token
        self.introduced()
        await self.follow_rights(link.live_session.owner)  # a link ends with its maker's account
        self.start(self._leave_at(link.expires_at))
        await self._begin()

    async def _leave_at(self, expiry: datetime) -> None:
        """The repeated check of rights would see it up to RIGHTS_CHECK_S later."""
        while (left := expiry - timezone.now()) > timedelta():  # noqa: ASYNC110  # no event tells
            await asyncio.sleep(left.total_seconds())
        await self.current_session()  # raises: the link has expired

    async def _wait_for_link(self) -> None:
        await asyncio.sleep(LINK_TIMEOUT_S)
        if not self._token:
            raise NotAuthenticatedError("The link was not shown in time.")

    async def _begin(self) -> None:
        session = await self.current_session()
        is_owner = not self._is_by_link and session.owner_id == self.scope["user"].pk
        self._is_speaker = is_owner and self._query("as") == "speaker"
        if not self._is_by_link:
            tell = database_sync_to_async(record_act)
            await tell(act=Act.VIEWED, actor=self.scope["user"], on=session)
        if not self._is_speaker:
            who, limits = secrets.token_hex(8), viewer_limits(self.session_id)
            await self.links.places.take(who, *limits)
            self.at_end(self.links.places.give_back, who, *limits)
        await self.follow()
        state: str = session.state
        if state in {LiveState.LIVE, LiveState.WAITING} and await self.links.is_paused(
            self.session_id
        ):
            state = "paused"
        recording = None if self._is_by_link else session.recording_id
        await self.say(
            wire.captions_ready_event(
                session=self.session_id,
                state=state,
                seq=session.last_seq,
                title=session.title,
                recording=str(recording) if recording else None,
            )
        )
        self.head_seq = await self.send_history(self._after_seq())
        self.start(self.pass_on())

    def _after_seq(self) -> int:
        value = self._query("after_seq") or "0"
        return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else 0

    def _query(self, name: str) -> str:
        text: str = self.scope["query_string"].decode("latin1")
        return parse_qs(text).get(name, [""])[-1]
