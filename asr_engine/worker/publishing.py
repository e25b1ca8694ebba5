"""What the engine said, on its way to recorder and viewers.

Finals, what the model could not hear, and the last words of a stream go to the event stream in
order, fenced by the epoch, for as long as it takes. Partials and lag go by pub/sub and may be lost.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from asr_engine.audio import samples_to_ms
from asr_engine.events import Ended, Endpoint, Failed, Final, Gap, Lag, Partial, StreamEvent
from asr_engine.protocol import (
    EngineEvent,
    EngineEventKind,
    ViewerEvent,
    captions_channel,
    encode,
)
from asr_engine.scripts import ChineseScript, written_text, written_words
from asr_engine.worker.connections import keep_trying
from asr_engine.worker.lifecycle import Lifecycle
from asr_engine.worker.ownership import Ownership
from asr_engine.worker.partials import PartialBoard
from asr_engine.worker.sessions import RunningSession, SessionTable

PARTIAL_TICK_S = 0.01
"""Between two looks at partials: those of steps that follow each other closely become one."""
MAX_WAITING_EVENTS = 1000
"""Events that wait for a lost broker before no more audio is read."""

MAX_FAILURES = 3
"""Failures in a row of the model on the same audio before that audio is skipped."""

log = structlog.get_logger(__name__)


class Publisher:
    """Publishes what the model thread delivers, and tells `lifecycle` what follows from it.

    Chinese is published in `script`, whatever the model wrote.
    """

    def __init__(
        self,
        broker: Redis,
        ownership: Ownership,
        sessions: SessionTable,
        lifecycle: Lifecycle,
        on_endpoint: Callable[[RunningSession], None],
        *,
        script: ChineseScript = "heard",
    ) -> None:
        self._broker = broker
        self._ownership = ownership
        self._sessions = sessions
        self._lifecycle = lifecycle
        self._on_endpoint = on_endpoint
        self._script = script
        self._outbox: asyncio.Queue[StreamEvent] = asyncio.Queue()
        self._partials = PartialBoard()
        self._has_partials = asyncio.Event()

    def deliver(self, events: list[StreamEvent]) -> None:
        """Take events from the model thread; called in the event loop."""
        for event in events:
            if isinstance(event, Partial):
                self._partials.put(event)
                self._has_partials.set()
            else:
                if isinstance(event, Final | Ended | Failed):
                    self._partials.withdraw(event.stream)
                self._outbox.put_nowait(event)

    @property
    def is_full(self) -> bool:
        return self._outbox.qsize() >= MAX_WAITING_EVENTS

    async def publish_events(self) -> None:
        """Publish in order, for ever."""
        while True:
            event = await self._outbox.get()
            running = self._sessions.of_stream(event.stream)
            if running is not None:
                await self._publish(running, event)
            self._outbox.task_done()

    async def drain(self) -> None:
        """Wait until everything delivered so far is published."""
        await self._outbox.join()

    async def publish_partials(self) -> None:
        """Send the newest partials, for ever; while the broker is away they are dropped."""
        while True:
            await self._has_partials.wait()
            self._has_partials.clear()
            while not self._partials.is_empty:
                await asyncio.sleep(PARTIAL_TICK_S)
                await self._tell_partials(self._partials.take_due(time.monotonic()))

    async def _tell_partials(self, due: list[Partial]) -> None:
        """In one round trip: a step of the model makes many at once."""
        if not due:
            return
        pipe = self._broker.pipeline(transaction=False)
        for partial in due:
            if running := self._sessions.of_stream(partial.stream):
                event = _partial_event(running, partial, self._script)
                pipe.publish(captions_channel(event.session), encode(event))
        try:
            await pipe.execute()
        except (RedisError, OSError):
            log.debug("partials_dropped", count=len(due))

    async def _fail(self, running: RunningSession, failed: Failed) -> None:
        """Open the stream again where the engine says, or past audio that fails every time."""
        running.resume_sample = failed.resume_sample
        running.failures += 1
        if running.failures > MAX_FAILURES:
            await self._skip(running, max(running.read_end_sample, running.resume_sample + 1))
            running.failures = 0
        self._lifecycle.reopen_soon(running)

    async def _skip(self, running: RunningSession, to_sample: int) -> None:
        """Mark the audio up to `to_sample`, which the model cannot bear, as a gap."""
        start_ms = samples_to_ms(running.resume_sample)
        running.resume_sample = to_sample
        await self._advance(
            running,
            EngineEvent(
                EngineEventKind.GAP,
                running.session,
                running.epoch,
                start_ms=start_ms,
                end_ms=max(start_ms + 1, samples_to_ms(to_sample)),
            ),
        )

    async def _publish(self, running: RunningSession, event: StreamEvent) -> None:
        match event:
            case Final():
                running.next_utterance = event.utterance + 1
                running.resume_sample = event.resume_sample
                running.failures = 0
                await self._advance(running, _final_event(running, event, self._script))
                self._on_endpoint(running)
            case Endpoint():
                running.resume_sample = event.resume_sample
                running.failures = 0
                await self._advance(running, None)
            case Gap():
                log.info("audio_missing", session=running.session)  # the recorder tells it
            case Lag():
                await self._tell_viewers(
                    ViewerEvent(type="lag", session=running.session, behind_ms=event.behind_ms)
                )
            case Ended():
                await self._leave(running, event)
            case Failed():
                await self._fail(running, event)

    async def _advance(self, running: RunningSession, event: EngineEvent | None) -> None:
        is_owner = await keep_trying(
            "broker",
            lambda: self._ownership.publish(
                running.session,
                epoch=running.epoch,
                next_utterance=running.next_utterance,
                resume_sample=running.resume_sample,
                event=event,
            ),
        )
        if not is_owner:
            self._lifecycle.drop(running)

    async def _leave(self, running: RunningSession, event: Ended) -> None:
        """All words are final: the session ended, or waits for its speaker."""
        last = EngineEvent(
            EngineEventKind.WAITING if running.is_idle else EngineEventKind.ENDED,
            running.session,
            running.epoch,
            end_sample=event.end_sample,
        )
        await keep_trying(
            "broker",
            lambda: self._ownership.release(
                running.session, epoch=running.epoch, event=last, is_handed_over=False
            ),
        )
        self._lifecycle.drop(running)

    async def _tell_viewers(self, event: ViewerEvent) -> None:
        try:
            await self._broker.publish(captions_channel(event.session), encode(event))
        except (RedisError, OSError):
            log.debug("viewer_event_dropped", session=event.session, type=event.type)


def _final_event(running: RunningSession, final: Final, script: ChineseScript) -> EngineEvent:
    language = final.language or running.language
    words = written_words(final.words, language=language, script=script)
    return EngineEvent(
        EngineEventKind.FINAL,
        running.session,
        running.epoch,
        utterance=final.utterance,
        start_ms=final.start_ms,
        end_ms=final.end_ms,
        text=written_text(final.text, language=language, script=script),
        words=tuple(word.as_json() for word in words),
        language=final.language,
        reason=final.reason.value,
    )


def _partial_event(running: RunningSession, partial: Partial, script: ChineseScript) -> ViewerEvent:
    language = partial.language or running.language
    return ViewerEvent(
        type="partial",
        session=running.session,
        utterance=partial.utterance,
        start_ms=partial.start_ms,
        end_ms=partial.end_ms,
        text=written_text(partial.text, language=language, script=script),
        stable_words=partial.stable_words,
        heard_ms=partial.heard_ms,
    )
