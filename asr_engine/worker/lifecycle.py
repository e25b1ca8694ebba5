"""How a session comes to run here and stops: claim, take-over, opening again, leaving."""

from __future__ import annotations

import asyncio
import contextlib

import structlog

from asr_engine.asyncio_tasks import LooseTasks
from asr_engine.errors import (
    EngineError,
    UnknownStreamError,
    UnsupportedLanguageError,
    UnsupportedModeError,
)
from asr_engine.streaming import Engine
from asr_engine.worker.connections import keep_trying
from asr_engine.worker.model_thread import ModelThread
from asr_engine.worker.ownership import ListedSession, Ownership
from asr_engine.worker.sessions import RunningSession, SessionTable

TAKE_OVER_EVERY_S = 1.0
REOPEN_PAUSE_S = 0.2

log = structlog.get_logger(__name__)


class Lifecycle:
    """Keeps claims, the session table and the engine's streams in step."""

    def __init__(
        self, thread: ModelThread, ownership: Ownership, sessions: SessionTable, engine: Engine
    ) -> None:
        self.claiming = asyncio.Lock()
        """Held from before a claim until its stream is open, so that nothing is claimed twice."""
        self._thread = thread
        self._ownership = ownership
        self._sessions = sessions
        self._capabilities = engine.capabilities
        self._reopenings = LooseTasks()

    @property
    def modes_ms(self) -> tuple[int, ...]:
        """The latency modes that the model has, ascending."""
        return self._capabilities.modes_ms

    def mode_for(self, wanted_ms: int) -> int:
        """The wanted latency mode if the model has it, else its default."""
        return wanted_ms if wanted_ms in self.modes_ms else self._capabilities.default_mode_ms

    async def begin(
        self, session: str, *, expected: str, mode_ms: int, language: str | None
    ) -> RunningSession | None:
        """Claim `session` and open its stream; the caller holds `claiming`.

        None when another engine was faster. Raises EngineError when the engine does not take it
        (the claim is given back), RedisError.
        """
        claim = await self._ownership.claim(
            session, expected=expected, mode_ms=mode_ms, language=language or ""
        )
        if claim is None:
            return None
        running = RunningSession.of(claim, mode_ms=mode_ms, language=language)
        try:
            await self._open_stream(running)
        except EngineError:
            await self._release(running)
            raise
        self._sessions.add(running)
        log.info("stream_opened", session=session, epoch=claim.epoch, mode_ms=mode_ms)
        return running

    async def change_mode(self, session: str, mode_ms: int) -> RunningSession:
        """Change the latency mode of a session that runs here; the caller holds `claiming`.

        It is in force from the stream's next step on, and for whoever takes the session after this
        engine. Raises UnsupportedModeError, UnknownStreamError, RedisError.
        """
        running = self._sessions.get(session)
        if running is None:
            raise UnknownStreamError
        if mode_ms not in self.modes_ms:
            raise UnsupportedModeError
        if not await self._ownership.set_mode(session, epoch=running.epoch, mode_ms=mode_ms):
            raise UnknownStreamError
        # First: a stream that is about to be opened again after a failure takes its mode from here.
        running.mode_ms = mode_ms
        with contextlib.suppress(UnknownStreamError):
            await self._thread.ask(lambda engine: engine.set_mode(running.stream, mode_ms=mode_ms))
        log.info("mode_changed", session=session, mode_ms=mode_ms)
        return running

    async def change_language(self, session: str, language: str | None) -> RunningSession:
        """Change the language of a session that runs here; the caller holds `claiming`.

        It is in force from the next utterance on, and for whoever takes the session after this
        engine. Raises UnsupportedLanguageError, UnknownStreamError, RedisError.
        """
        running = self._sessions.get(session)
        if running is None:
            raise UnknownStreamError
        if not self._capabilities.knows(language):
            raise UnsupportedLanguageError
        if not await self._ownership.set_language(
            session, epoch=running.epoch, language=language or ""
        ):
            raise UnknownStreamError
        running.language = language  # first, as in `change_mode`
        with contextlib.suppress(UnknownStreamError):
            await self._thread.ask(
                lambda engine: engine.set_language(running.stream, language=language)
            )
        log.info("language_changed", session=session)
        return running

    async def take_over(self, *, may_take: bool) -> None:
        """Drop sessions that others took, and take those that nobody runs if this engine takes any
        (`may_take`). Raises RedisError."""
        async with self.claiming:
            known = {running.session: running for running in self._sessions}
            listed = await self._ownership.listed()
            for item in listed:
                running = known.get(item.session)
                if running is not None and item.owner != self._ownership.owner:
                    self.drop(running)
            if not may_take:
                return
            for orphan in await self._ownership.orphans(listed, known):
                if await self._thread.ask(lambda engine: engine.free_slots) == 0:
                    return
                await self._take(orphan)

    def reopen_soon(self, running: RunningSession) -> None:
        """Open the stream again from `resume_sample` after the model failed on it."""
        running.is_open = False
        self._reopenings.start(self._reopen(running))

    def drop(self, running: RunningSession) -> None:
        """Forget a session that is no longer ours; frees its slot."""
        self._sessions.remove(running)
        self._thread.post(lambda engine: engine.close_stream(running.stream))
        log.info("stream_closed", session=running.session, epoch=running.epoch)

    async def hand_over_all(self) -> None:
        """Leave every session to a successor, at once. Raises RedisError."""
        await self._reopenings.end()
        for running in self._sessions:
            self._sessions.remove(running)
            await self._release(running)

    async def _take(self, orphan: ListedSession) -> None:
        try:
            running = await self.begin(
                orphan.session,
                expected=orphan.owner,
                mode_ms=self.mode_for(orphan.mode_ms),
                language=orphan.language or None,
            )
        except EngineError as error:
            log.warning("take_over_refused", session=orphan.session, code=error.code)
        else:
            if running is not None:
                log.info("session_taken_over", session=orphan.session)

    async def _reopen(self, running: RunningSession) -> None:
        await asyncio.sleep(REOPEN_PAUSE_S * running.failures)
        if self._sessions.get(running.session) is not running:
            return
        running.start_again()
        try:
            await self._open_stream(running)
        except EngineError as error:
            log.warning("reopening_refused", session=running.session, code=error.code)
            self._sessions.remove(running)
            await keep_trying("broker", lambda: self._release(running))
        else:
            running.is_open = True

    async def _open_stream(self, running: RunningSession) -> None:
        await self._thread.ask(
            lambda engine: engine.open_stream(
                running.stream,
                language=running.language,
                mode_ms=running.mode_ms,
                next_utterance=running.next_utterance,
                first_sample=running.resume_sample,
            )
        )

    async def _release(self, running: RunningSession) -> None:
        await self._ownership.release(
            running.session, epoch=running.epoch, event=None, is_handed_over=True
        )
