"""Starting and ending asyncio tasks, for the engine process and the web process alike."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine
from typing import Any

import structlog

from asr_engine.errors import place_of

CANCEL_AGAIN_S = 0.1

log = structlog.get_logger(__name__)


async def end_tasks(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel `tasks` until they have ended.

    Once is not enough: `asyncio.wait_for` of Python 3.11, which redis-py uses for every command,
    swallows a cancellation that comes as it succeeds.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _ended, left = await asyncio.wait(left, timeout=CANCEL_AGAIN_S)


class LooseTasks:
    """Short tasks that nobody awaits; what one raises is logged and ends nothing else."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._forget)

    async def end(self) -> None:
        await end_tasks(self._running)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("task_failed", error=type(error).__name__, place=place_of(error))
