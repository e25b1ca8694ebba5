"""Names of the Celery tasks, and how to send one when the transaction has committed.

Owns no work. A message is a wake-up: losing it costs at most one sweep of the beat.
"""

from __future__ import annotations

from enum import StrEnum

from celery import current_app
from django.db import transaction


class Task(StrEnum):
    """Task names; the same names are registered in `transcription.tasks`."""

    RUN_JOBS = "transcription.run_jobs"
    CHECK_UPLOAD = "transcription.check_upload"
    REAP = "transcription.reap"


QUEUES = {Task.RUN_JOBS: "batch", Task.CHECK_UPLOAD: "chores", Task.REAP: "chores"}


def wake_on_commit(task: Task, *arguments: str) -> None:
    """Send `task` after the current transaction, or at once where there is none."""
    transaction.on_commit(lambda: send(task, *arguments))


def send(task: Task, *arguments: str) -> None:
    current_app.send_task(task.value, args=list(arguments), queue=QUEUES[task], ignore_result=True)
