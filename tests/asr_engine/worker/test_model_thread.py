from __future__ import annotations

import asyncio
import threading

import pytest

from asr_engine.backends.scripted import encode_blocks
from asr_engine.errors import NoFreeSlotError
from asr_engine.events import StreamEvent
from asr_engine.streaming import Engine
from asr_engine.worker.model_thread import ModelThread
from tests.fakes.engines import finals_of, scripted_engine


async def test_events_come_back_in_the_event_loop_in_order() -> None:
    thread = ModelThread(scripted_engine())
    events: list[StreamEvent] = []
    threads: set[int] = set()

    def deliver(new: list[StreamEvent]) -> None:
        events.extend(new)
        threads.add(threading.get_ident())

    thread.start(deliver)
    await thread.ask(lambda engine: engine.open_stream("a"))
    audio = encode_blocks([None] * 5 + [1, 2] + [None] * 10 + [3] + [None] * 10)
    thread.post(lambda engine: engine.accept_audio("a", 0, audio))
    thread.post(lambda engine: engine.end_audio("a"))
    async with asyncio.timeout(10):
        while len(finals_of(events)) < 2:  # noqa: ASYNC110 -- the other side is a thread
            await asyncio.sleep(0.005)
    await thread.stop(5)
    assert [final.text for final in finals_of(events)] == ["w1 w2", "w3"]
    assert threads == {threading.get_ident()}


async def test_asking_raises_what_the_engine_raises() -> None:
    thread = ModelThread(scripted_engine(slots=1))
    thread.start(lambda events: None)
    await thread.ask(Engine.check_admission)
    await thread.ask(lambda engine: engine.open_stream("a"))
    with pytest.raises(NoFreeSlotError):
        await thread.ask(Engine.check_admission)
    assert await thread.ask(lambda engine: engine.free_slots) == 0
    await thread.stop(5)
    assert not thread.is_alive


async def test_what_was_posted_before_stopping_is_run() -> None:
    engine = scripted_engine()
    thread = ModelThread(engine)
    thread.start(lambda events: None)
    thread.post(lambda engine: engine.open_stream("a"))
    await thread.stop(5)
    assert engine.free_slots == engine.slots - 1
