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
    REFINE_LIVE = "transcription.refine_live"
    CHECK_UPLOAD = "transcription.check_upload"
    COPY_UPLOAD = "transcription.copy_upload"
    WATCH_FOLDER = "transcription.watch_folder"
    MAKE_PLAYER = "transcription.make_player"
    REAP = "transcription.reap"
    SWEEP = "transcription.sweep"
    SWEEP_FOLDERS = "transcription.sweep_folders"
    FORGET_LOGINS = "transcription.forget_logins"
    FORGET_AUDIT = "transcription.forget_audit"
    PURGE = "transcription.purge"
    SEND_WEBHOOKS = "transcription.send_webhooks"
    FORGET_DELIVERIES = "transcription.forget_deliveries"


BATCH = "batch"
CHORES = "chores"
QUEUES = {
    Task.RUN_JOBS: BATCH,
    Task.REFINE_LIVE: BATCH,
    Task.CHECK_UPLOAD: CHORES,
    Task.COPY_UPLOAD: CHORES,
    Task.WATCH_FOLDER: CHORES,
    Task.MAKE_PLAYER: CHORES,
    Task.REAP: CHORES,
    Task.SWEEP: CHORES,
    Task.SWEEP_FOLDERS: CHORES,
    Task.FORGET_LOGINS: CHORES,
    Task.FORGET_AUDIT: CHORES,
    Task.PURGE: CHORES,
    Task.SEND_WEBHOOKS: CHORES,
    Task.FORGET_DELIVERIES: CHORES,
}


def wake_on_commit(task: Task, *arguments: str, expires_s: float | None = None) -> None:
    """Send `task` after the current transaction, or at once where there is none."""
    # Robust: what is committed stays done while the broker restarts, and the sweep sends it again.
    transaction.on_commit(lambda: send(task, *arguments, expires_s=expires_s), robust=True)


def send(task: Task, *arguments: str, expires_s: float | None = None) -> None:
    """Send now. After `expires_s` a worker drops the message unread."""
    current_app.send_task(
        task.value,
        args=list(arguments),
        queue=QUEUES[task],
        ignore_result=True,
        expires=expires_s,
    )
