"""The one thread that owns the Engine, and the hand-over between it and the event loop.

The loop posts calls; the thread runs them between two model steps and gives events back. The loop
never waits for a model except where it asks for an answer.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import structlog

from asr_engine.errors import ModelError, place_of
from asr_engine.events import Partial, StreamEvent
from asr_engine.streaming import Engine

GATHER_S = 0.010
"""Partials of steps that follow each other this closely are told together: the two chunks that one
packet completes make one partial, not two, the second of which would wait for its turn."""

T = TypeVar("T")
log = structlog.get_logger(__name__)
Call = Callable[[Engine], object]


class ModelThread:
    """Runs posted calls and model steps, one at a time, for as long as there is something to do."""

    def __init__(self, engine: Engine) -> None:
        self.behind_ms: dict[str, int] = {}
        """How far the model is behind each stream's audio, as of the last step."""
        self.free_slots = engine.free_slots
        self._engine = engine
        self._wake = threading.Condition()
        self._calls: deque[Call] = deque()
        self._is_stopping = False
        self._working_since_s: float | None = None
        self._thread: threading.Thread | None = None

    def start(self, deliver: Callable[[list[StreamEvent]], None]) -> None:
        """`deliver` is called in the running event loop with the events of each step, in order."""
        loop = asyncio.get_running_loop()
        self._thread = threading.Thread(
            target=self._run,
            args=(lambda events: loop.call_soon_threadsafe(deliver, events),),
            name="model",
            daemon=True,
        )
        self._thread.start()

    async def stop(self, timeout_s: float) -> None:
        """Run what was posted, make no further step, deliver the last events."""
        with self._wake:
            self._is_stopping = True
            self._wake.notify()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, timeout_s)

    @property
    def lag_ms(self) -> int:
        return max(self.behind_ms.values(), default=0)

    @property
    def is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def stuck_s(self) -> float:
        """Seconds since the present turn of calls and one step began; 0 when idle."""
        since = self._working_since_s
        return 0.0 if since is None else time.monotonic() - since

    def post(self, call: Call) -> None:
        """Have `call` run soon. It must not raise."""
        with self._wake:
            self._calls.append(call)
            self._wake.notify()

    async def ask(self, call: Callable[[Engine], T]) -> T:
        """The result of `call`, run after everything posted before it. Raises what it raises."""
        answer: Future[T] = Future()

        def run(engine: Engine) -> None:
            if not answer.set_running_or_notify_cancel():
                return
            try:
                answer.set_result(call(engine))
            except Exception as error:  # noqa: BLE001 -- belongs to the one who asked
                answer.set_exception(error)

        self.post(run)
        return await asyncio.wrap_future(answer)

    def _run(self, deliver: Callable[[list[StreamEvent]], object]) -> None:
        try:
            self._work(deliver)
        except Exception as error:  # noqa: BLE001 -- the heartbeat finds the thread dead
            log.error(  # noqa: TRY400 -- a message could quote what was said
                "model_thread_died", error=type(error).__name__, place=place_of(error)
            )

    def _work(self, deliver: Callable[[list[StreamEvent]], object]) -> None:
        has_worked = False
        gathered: list[StreamEvent] = []
        gathering_since_s = 0.0
        while True:
            calls = self._take_calls(is_idle=not has_worked)
            if calls is None:
                return
            self._working_since_s = time.monotonic()
            for call in calls:
                call(self._engine)
            has_worked = self._engine.step()
            if self._engine.is_broken:
                raise ModelError("the model fails whatever it is given")
            self.behind_ms = self._engine.behind_ms()
            self.free_slots = self._engine.free_slots
            now = time.monotonic()
            gathering_since_s = gathering_since_s if gathered else now
            gathered += self._engine.take_events()
            may_wait = has_worked and now - gathering_since_s < GATHER_S
            if gathered and not (may_wait and all(isinstance(e, Partial) for e in gathered)):
                deliver(gathered)
                gathered = []
            self._working_since_s = None

    def _take_calls(self, *, is_idle: bool) -> list[Call] | None:
        with self._wake:
            while is_idle and not self._calls and not self._is_stopping:
                self._wake.wait()
            if self._is_stopping and not self._calls:
                return None
            calls = list(self._calls)
            self._calls.clear()
            return calls
