"""The road of a recording in one process: what is sent to the workers is done by a thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import celery
import pytest
from django.db import close_old_connections, connection

from asr_engine.batch.intake import take_in
from asr_engine.config import EngineSettings
from transcription.queue import Task
from transcription.runners import batch_job, ingest


class Road:
    """While `is_open` is clear, messages wait. `failures` are what a task raised."""

    def __init__(self) -> None:
        self.is_open = threading.Event()
        self.is_open.set()
        self.failures: list[BaseException] = []
        self._messages: queue.Queue[tuple[str, ...] | None] = queue.Queue()

    def send(self, name: str, args: list[str]) -> None:
        self._messages.put((name, *args))

    def work(self) -> None:
        while (message := self._messages.get()) is not None:
            self.is_open.wait()
            try:
                self._do(*message)
            except BaseException as error:  # noqa: BLE001 - told by the test
                self.failures.append(error)
        connection.close()  # this thread's own

    def end(self) -> None:
        self.is_open.set()
        self._messages.put(None)

    def _do(self, name: str, *arguments: str) -> None:
        close_old_connections()
        match name:
            case Task.CHECK_UPLOAD:
                ingest.check_upload(arguments[0])
            case Task.RUN_JOBS:
                while batch_job.run_next_slice("jobs@road"):
                    pass


@contextmanager
def open_road(monkeypatch: pytest.MonkeyPatch) -> Iterator[Road]:
    """Checks and transcriptions, with the scripted model, in a thread of their own."""
    road = Road()

    def send_task(self: celery.Celery, name: str, args: list[str], **options: Any) -> None:
        road.send(name, args)

    monkeypatch.setattr(celery.Celery, "send_task", send_task)
    settings = EngineSettings(batch_backend="scripted")
    monkeypatch.setattr(batch_job, "engine_settings", lambda: settings)
    monkeypatch.setattr(ingest, "take_in_safely", take_in)  # a child would be started for each
    batch_job.loaded_models.cache_clear()
    thread = threading.Thread(target=road.work, name="road")
    thread.start()
    try:
        yield road
    finally:
        road.end()
        thread.join()
        batch_job.loaded_models.cache_clear()
    assert road.failures == []
