"""The engine process as a whole: starts its parts, beats, and leaves in order."""

from __future__ import annotations

import asyncio
import time

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from asr_engine.asyncio_tasks import end_tasks
from asr_engine.errors import EngineError
from asr_engine.protocol import ENGINE_TTL_S, ENGINES_KEY, EngineStatus, encode, engine_key
from asr_engine.scripts import ChineseScript
from asr_engine.streaming import Engine
from asr_engine.worker.admission import Admission
from asr_engine.worker.connections import keep_trying
from asr_engine.worker.draining import Draining
from asr_engine.worker.hearing import AudioReader
from asr_engine.worker.lifecycle import TAKE_OVER_EVERY_S, Lifecycle
from asr_engine.worker.model_thread import ModelThread
from asr_engine.worker.ownership import Ownership
from asr_engine.worker.publishing import Publisher
from asr_engine.worker.sessions import SessionTable

BEAT_EVERY_S = 1.0
STUCK_S = 60.0
"""A model step that takes longer never ends: the process must be started again."""
LEAVE_TIMEOUT_S = 8.0

log = structlog.get_logger(__name__)


class ModelThreadError(EngineError):
    """The model thread has died, or hangs."""

    code = "model_thread"


class EngineService:
    """One engine on its broker and audio server."""

    def __init__(
        self,
        engine: Engine,
        *,
        name: str,
        incarnation: str,
        broker: Redis,
        audio: Redis,
        script: ChineseScript = "heard",
    ) -> None:
        self._engine = engine
        self._name = name
        self._broker = broker
        self._ownership = Ownership(broker, name=name, incarnation=incarnation)
        self._sessions = SessionTable()
        self._thread = ModelThread(engine)
        self._lifecycle = Lifecycle(self._thread, self._ownership, self._sessions, engine)
        self._draining = Draining(
            broker,
            self._ownership,
            thread=self._thread,
            sessions=self._sessions,
            lifecycle=self._lifecycle,
        )
        self._publisher = Publisher(
            broker,
            self._ownership,
            self._sessions,
            self._lifecycle,
            on_endpoint=self._draining.note_endpoint,
            script=script,
        )
        self._reader = AudioReader(audio, self._thread, self._sessions, self._publisher)
        self._admission = Admission(
            broker,
            name=name,
            thread=self._thread,
            sessions=self._sessions,
            lifecycle=self._lifecycle,
            draining=self._draining,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set, then leave the sessions to a successor.

        Raises ModelThreadError when the model can no longer be used.
        """
        self._thread.start(self._publisher.deliver)
        publishing = asyncio.create_task(self._publisher.publish_events())
        serving = [
            asyncio.create_task(part)
            for part in (
                self._beat(),
                self._admission.listen(),
                self._reader.read(),
                self._publisher.publish_partials(),
                self._draining.move_sessions(),
                self._take_over(),
            )
        ]
        stopping = asyncio.create_task(stop.wait())
        log.info("engine_started", engine=self._name, slots=self._engine.slots)
        ended, _ = await asyncio.wait(
            {publishing, stopping, *serving}, return_when=asyncio.FIRST_COMPLETED
        )
        self._draining.is_on = True  # what is asked until the last moment is refused
        await end_tasks([stopping, *serving])
        await self._admission.end()
        try:
            async with asyncio.timeout(LEAVE_TIMEOUT_S):
                await self._leave()
        except (TimeoutError, RedisError, OSError) as error:
            log.warning("left_in_haste", error=type(error).__name__)
        await end_tasks([publishing])
        log.info("engine_stopped", engine=self._name)
        for task in ended - {stopping}:
            task.result()

    async def _leave(self) -> None:
        """Publish what is final already; what is open a successor hears again."""
        await self._thread.stop(LEAVE_TIMEOUT_S / 2)
        await self._publisher.drain()
        await self._lifecycle.hand_over_all()
        await self._broker.delete(engine_key(self._name))

    async def _take_over(self) -> None:
        while True:
            await keep_trying(
                "broker", lambda: self._lifecycle.take_over(may_take=not self._draining.is_on)
            )
            await asyncio.sleep(TAKE_OVER_EVERY_S)

    async def _beat(self) -> None:
        await self._admission.is_listening.wait()
        while True:
            if not self._thread.is_alive:
                raise ModelThreadError("the model thread has died")
            if self._thread.stuck_s() > STUCK_S:
                raise ModelThreadError("the model hangs")
            await keep_trying("broker", self._say_status)
            await asyncio.sleep(BEAT_EVERY_S)

    async def _say_status(self) -> None:
        capabilities = self._engine.capabilities
        status = EngineStatus(
            engine=self._name,
            model=capabilities.name,
            languages=capabilities.languages,
            can_detect_language=capabilities.can_detect_language,
            modes_ms=capabilities.modes_ms,
            default_mode_ms=capabilities.default_mode_ms,
            slots=self._engine.slots,
            free_slots=self._thread.free_slots,
            is_draining=self._draining.is_on,
            beat_at_s=time.time(),
            lag_ms=self._thread.lag_ms,
            sessions=len(self._sessions),
        )
        pipe = self._broker.pipeline(transaction=False)
        pipe.set(engine_key(self._name), encode(status), ex=ENGINE_TTL_S)
        pipe.sadd(ENGINES_KEY, self._name)
        await pipe.execute()
