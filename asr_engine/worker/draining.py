"""Taking an engine out of service: its sessions move to other engines while people speak.

A session moves between two utterances: at its next endpoint, or at once where nobody speaks. The
other engine claims it (`client.move_stream`), which fences this one off, and hears the audio again
from the place to resume: no word is lost, none is said twice. Where no other engine has room the
sessions stay and captions go on here.
"""

from __future__ import annotations

import asyncio
import contextlib

import structlog
from redis.asyncio import Redis

from asr_engine import client
from asr_engine.worker.connections import keep_trying
from asr_engine.worker.lifecycle import Lifecycle
from asr_engine.worker.model_thread import ModelThread
from asr_engine.worker.ownership import Ownership
from asr_engine.worker.sessions import RunningSession, SessionTable

LOOK_EVERY_S = 0.2
"""How often to look for sessions in which nobody speaks."""
NO_ROOM_PAUSE_S = 1.0
"""How long to wait after no other engine had room."""

log = structlog.get_logger(__name__)


class Draining:
    """Whether this engine takes sessions, and the way out for those that it has."""

    def __init__(
        self,
        broker: Redis,
        ownership: Ownership,
        *,
        thread: ModelThread,
        sessions: SessionTable,
        lifecycle: Lifecycle,
    ) -> None:
        self.is_on = False
        self._broker = broker
        self._ownership = ownership
        self._thread = thread
        self._sessions = sessions
        self._lifecycle = lifecycle
        self._is_ordered = asyncio.Event()
        self._has_endpoint = asyncio.Event()
        self._at_endpoint: set[RunningSession] = set()
        self._said = ""

    def order(self, *, is_draining: bool) -> None:
        """Begin to drain, or serve again."""
        log.info("drain_ordered" if is_draining else "drain_ended")
        self.is_on = is_draining
        self._said = ""
        if is_draining:
            self._is_ordered.set()
        else:
            self._is_ordered.clear()

    def note_endpoint(self, running: RunningSession) -> None:
        """An utterance of `running` was just published."""
        if self._is_ordered.is_set():
            self._at_endpoint.add(running)
            self._has_endpoint.set()

    async def move_sessions(self) -> None:
        """While ordered to, move sessions when nobody speaks in them; for ever."""
        while True:
            await self._is_ordered.wait()
            self._has_endpoint.clear()
            movable = await self._movable()
            self._at_endpoint.clear()
            has_room = True
            for running in movable:
                has_room = has_room and await self._move(running)
            self._say(has_room=has_room)
            if has_room:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._has_endpoint.wait(), LOOK_EVERY_S)
            else:
                await asyncio.sleep(NO_ROOM_PAUSE_S)
                self._at_endpoint.clear()  # long past

    async def _movable(self) -> list[RunningSession]:
        quiet = set(await self._thread.ask(lambda engine: engine.quiet_streams()))
        return [
            running
            for running in self._sessions
            if running.is_open
            and not running.is_over  # its last words are due here at once
            and (running.stream in quiet or running in self._at_endpoint)
        ]

    async def _move(self, running: RunningSession) -> bool:
        """False where nobody has room for it."""
        has_moved = await keep_trying(
            "broker",
            lambda: client.move_stream(
                self._broker,
                session=running.session,
                owner=self._ownership.owner,
                language=running.language,
                mode_ms=running.mode_ms,
            ),
        )
        if has_moved and self._sessions.get(running.session) is running:
            log.info("session_moved", session=running.session)
            self._lifecycle.drop(running)
        return has_moved

    def _say(self, *, has_room: bool) -> None:
        """Log each state once."""
        if not len(self._sessions):
            state = "engine_empty"
        elif not has_room:
            state = "no_other_engine_has_room"
        else:
            return
        if state != self._said:
            log.info(state, sessions=len(self._sessions))
        self._said = state
