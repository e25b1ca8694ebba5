"""Commands to this engine: answers to `open`, `set_mode`, `set_language`; orders to drain."""

from __future__ import annotations

import asyncio
import time

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from asr_engine.asyncio_tasks import LooseTasks
from asr_engine.errors import EngineError, OverloadedError
from asr_engine.protocol import (
    ADMISSION_TIMEOUT_S,
    COMMAND_FIELD,
    Command,
    Reply,
    commands_key,
    decode_command,
    encode,
    reply_key,
)
from asr_engine.worker.connections import StreamEntry, keep_trying, read_streams
from asr_engine.worker.draining import Draining
from asr_engine.worker.lifecycle import Lifecycle
from asr_engine.worker.model_thread import ModelThread
from asr_engine.worker.sessions import RunningSession, SessionTable

REPLY_TTL_S = 10
READ_BLOCK_MS = 1000
COMMANDS_PER_READ = 100
CLOSING_PATIENCE_S = 1.0
"""How long an `open` waits for the same session's earlier stream to finish its last words."""

log = structlog.get_logger(__name__)


def packet_ms_for(mode_ms: int) -> int:
    """How long the browser's packets should be in a latency mode."""
    return mode_ms if mode_ms in {80, 160} else 200


class Admission:
    """Decides who gets a slot. The engine alone admits, one request at a time."""

    def __init__(
        self,
        broker: Redis,
        *,
        name: str,
        thread: ModelThread,
        sessions: SessionTable,
        lifecycle: Lifecycle,
        draining: Draining,
    ) -> None:
        self.is_listening = asyncio.Event()
        """Before that a command is lost, so the engine must not be known yet."""
        self._broker = broker
        self._name = name
        self._thread = thread
        self._sessions = sessions
        self._lifecycle = lifecycle
        self._draining = draining
        self._answers = LooseTasks()
        self._last_id = "0-0"

    async def listen(self) -> None:
        """Take commands, for ever. What was sent to an earlier process of this name is void."""
        key = commands_key(self._name)
        await keep_trying("broker", lambda: self._broker.delete(key))
        self.is_listening.set()
        while True:
            found = await keep_trying("broker", self._read)
            for entry in found.get(key, []):
                self._last_id = entry.entry_id
                if command := _parse(entry.fields):
                    self._answers.start(self._obey(command))

    async def end(self) -> None:
        """Leave unanswered what is not answered yet."""
        await self._answers.end()

    async def _read(self) -> dict[str, list[StreamEntry]]:
        return await read_streams(
            self._broker,
            {commands_key(self._name): self._last_id},
            count=COMMANDS_PER_READ,
            block_ms=READ_BLOCK_MS,
        )

    async def _obey(self, command: Command) -> None:
        if command.kind in {"drain", "undrain"}:
            self._draining.order(is_draining=command.kind == "drain")
        elif time.time() - command.sent_at_s > ADMISSION_TIMEOUT_S:
            log.info("command_was_stale", session=command.session, kind=command.kind)
        else:
            await self._answer(command)

    async def _answer(self, command: Command) -> None:
        try:
            is_opening = command.kind == "open"
            reply = await (self._admit(command) if is_opening else self._change(command))
            pipe = self._broker.pipeline(transaction=False)
            pipe.rpush(reply_key(command.request), encode(reply))
            pipe.expire(reply_key(command.request), REPLY_TTL_S)
            await pipe.execute()
        except (RedisError, OSError) as error:
            # Without an answer the asker tries elsewhere; a stream nobody feeds goes idle.
            log.warning("answer_failed", session=command.session, error=type(error).__name__)

    async def _change(self, command: Command) -> Reply:
        lifecycle, session = self._lifecycle, command.session
        async with lifecycle.claiming:  # also keeps two changes in their order
            try:
                if command.kind == "set_mode":
                    running = await lifecycle.change_mode(session, command.mode_ms)
                else:
                    running = await lifecycle.change_language(session, command.language)
            except EngineError as error:
                log.info("change_refused", session=session, kind=command.kind, code=error.code)
                return self._refusal(error)
        return self._admitted(running)

    async def _admit(self, command: Command) -> Reply:
        running = self._sessions.get(command.session)
        if running is not None and running.is_over:
            await self._wait_until_closed(running)
        async with self._lifecycle.claiming:
            running = self._sessions.get(command.session)
            try:
                if running is None:
                    running = await self._open(command)
            except EngineError as error:
                log.info("stream_refused", session=command.session, code=error.code)
                return self._refusal(error)
        return self._admitted(running)

    def _admitted(self, running: RunningSession) -> Reply:
        return Reply(
            is_admitted=True,
            engine=self._name,
            epoch=running.epoch,
            mode_ms=running.mode_ms,
            packet_ms=packet_ms_for(running.mode_ms),
            modes_ms=self._lifecycle.modes_ms,
        )

    def _refusal(self, error: EngineError) -> Reply:
        return Reply(False, self._name, code=error.code, reason=str(error))

    async def _open(self, command: Command) -> RunningSession:
        if self._draining.is_on:
            raise OverloadedError("This engine is being taken out of service.")
        mode_ms = self._lifecycle.mode_for(command.mode_ms)
        await self._thread.ask(lambda engine: engine.check_admission(mode_ms=mode_ms))
        running = await self._lifecycle.begin(
            command.session,
            expected="*" if command.owner is None else command.owner,
            mode_ms=mode_ms,
            language=command.language,
        )
        if running is None:
            raise OverloadedError
        return running

    @staticmethod
    async def _wait_until_closed(running: RunningSession) -> None:
        try:
            async with asyncio.timeout(CLOSING_PATIENCE_S):
                await running.closed.wait()
        except TimeoutError:
            log.info("closing_takes_long", session=running.session)


def _parse(fields: dict[bytes, bytes]) -> Command | None:
    try:
        return decode_command(fields[COMMAND_FIELD.encode()])
    except (KeyError, TypeError, ValueError):
        log.warning("command_not_understood")
        return None
