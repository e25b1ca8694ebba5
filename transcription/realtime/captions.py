"""The socket of a reader: `/ws/v1/live/<session>/captions?after_seq=N`."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qs

from transcription.models import LiveState
from transcription.realtime import wire
from transcription.realtime.fanout import CaptionEvent
from transcription.realtime.socket import CookieSocket

FOR_THE_SPEAKER: Final = frozenset({"ack", "taken"})


class CaptionsSocket(CookieSocket):
    """Subscribes first, then reads what is stored, then drops what came twice."""

    async def on_connect(self) -> None:
        await super().on_connect()
        session = await self.current_session()
        await self.follow()
        state: str = session.state
        if state in {LiveState.LIVE, LiveState.WAITING} and await self.links.is_paused(
            self.session_id
        ):
            state = "paused"
        await self.say(
            wire.captions_ready_event(
                session=self.session_id,
                state=state,
                seq=session.last_seq,
                title=session.title,
                recording=str(session.recording_id) if session.recording_id else None,
            )
        )
        self.head_seq = await self.send_history(self._after_seq())
        self.start(self.pass_on())

    async def on_message(self, message: wire.ClientMessage) -> None:
        if not isinstance(message, wire.Refetch):
            return await super().on_message(message)
        await self.send_history(message.after_seq)
        return None

    async def on_event(self, event: CaptionEvent) -> None:
        is_in_history = 0 < event.seq <= self.head_seq and event.type != "head"
        if not is_in_history and event.type not in FOR_THE_SPEAKER:
            await super().on_event(event)

    def _after_seq(self) -> int:
        query = parse_qs(self.scope["query_string"].decode("latin1"))
        value = query.get("after_seq", ["0"])[-1]
        return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else 0
