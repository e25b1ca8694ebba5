from __future__ import annotations

import asyncio

import pytest
import structlog
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import OutOfMemoryError

from asr_engine.asyncio_tasks import LooseTasks, end_tasks
from asr_engine.worker import connections


async def test_a_lost_server_is_waited_for_and_told_of_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "FIRST_PAUSE_S", 0.0)
    failures: list[Exception] = [
        RedisConnectionError("gone"),
        OSError("gone"),
        OutOfMemoryError("full"),
    ]

    async def call() -> str:
        if failures:
            raise failures.pop(0)
        return "answer"

    with structlog.testing.capture_logs() as logs:
        assert await connections.keep_trying("broker", call) == "answer"
    assert [entry["event"] for entry in logs] == ["server_lost", "server_found"]


async def test_a_fault_of_our_own_is_not_tried_again() -> None:
    async def call() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await connections.keep_trying("broker", call)


async def test_a_task_that_swallows_a_cancellation_is_ended_all_the_same() -> None:
    swallowed = 0

    async def stubborn() -> None:
        nonlocal swallowed
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                swallowed += 1
                if swallowed > 2:
                    raise

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    await end_tasks([task])
    assert task.cancelled()


async def test_a_loose_task_that_fails_ends_nothing_else() -> None:
    tasks = LooseTasks()

    async def fail() -> None:
        raise ZeroDivisionError

    with structlog.testing.capture_logs() as logs:
        tasks.start(fail())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await tasks.end()
    assert [(entry["event"], entry["error"]) for entry in logs] == [
        ("task_failed", "ZeroDivisionError")
    ]
