"""Thin Celery tasks: each has the verb of the service or runner that it calls.

Runners that bring the engine are imported on use: only workers may load it.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any, Final

from celery import Task as CeleryTask
from celery import shared_task
from celery.signals import worker_init, worker_ready
from django.contrib.sessions.backends.db import SessionStore

from transcription.queue import BATCH, CHORES, Task, send
from transcription.runners.ending import watch_for_end
from transcription.services import (
    idempotency,
    intake_folder,
    job_queue,
    purge,
    storage,
    tracks,
    uploads,
    watch_folder,
    webhook_deliveries,
)
from webapp.accounts import audit

NICENESS: Final = 15
"""Workers give way to the web and the engine on the same machine."""


@shared_task(name=Task.RUN_JOBS.value, bind=True)
def run_jobs(self: CeleryTask) -> None:
    from transcription.runners.batch_job import run_next_slice

    run_next_slice(self.request.hostname)


@shared_task(name=Task.REFINE_LIVE.value, bind=True)
def refine_live(self: CeleryTask) -> None:
    from transcription.runners.batch_job import refine_live_now

    refine_live_now(self.request.hostname)


@shared_task(name=Task.CHECK_UPLOAD.value)
def check_upload(upload_id: str) -> None:
    from transcription.runners.ingest import check_upload as check

    check(upload_id)


@shared_task(name=Task.COPY_UPLOAD.value)
def copy_upload(upload_id: str) -> None:
    intake_folder.copy_upload(upload_id)


@shared_task(name=Task.WATCH_FOLDER.value)
def take_from_watch_folder() -> None:
    watch_folder.take_from_watch_folder()


@shared_task(name=Task.MAKE_PLAYER.value)
def make_player(recording_id: str) -> None:
    from transcription.runners.ingest import make_player as make

    make(recording_id)


@shared_task(name=Task.REAP.value)
def reap_jobs() -> None:
    job_queue.reap_jobs()


@shared_task(name=Task.SWEEP.value)
def sweep_uploads() -> None:
    uploads.sweep_uploads()
    intake_folder.ask_for_copies()
    tracks.ask_for_players()


@shared_task(name=Task.SWEEP_FOLDERS.value)
def sweep_orphans() -> None:
    storage.sweep_orphans()


@shared_task(name=Task.FORGET_LOGINS.value)
def forget_logins() -> None:
    SessionStore.clear_expired()
    idempotency.forget_old_requests()


@shared_task(name=Task.FORGET_AUDIT.value)
def forget_audit() -> None:
    audit.forget_expired_entries()


@shared_task(name=Task.PURGE.value)
def purge_expired() -> None:
    purge.purge_if_due()


@shared_task(name=Task.SEND_WEBHOOKS.value)
def send_webhooks() -> None:
    from transcription.runners.webhook_sending import send_webhooks as send_due

    send_due()


@shared_task(name=Task.FORGET_DELIVERIES.value)
def forget_deliveries() -> None:
    webhook_deliveries.forget_deliveries()


@worker_init.connect
def give_way(**_: Any) -> None:
    """Before any thread starts: niceness belongs to a thread and is inherited by its children."""
    os.nice(NICENESS)


@worker_init.connect
def hear_of_the_end(**_: Any) -> None:
    """A running slice gives its job back as soon as this process is asked to end."""
    watch_for_end()


@worker_ready.connect
def take_up_work(sender: Any, **_: Any) -> None:
    """Take back what a dead worker of this name held, and look for what waits."""
    queues = sender.app.amqp.queues.consume_from
    if BATCH in queues:
        job_queue.reclaim_jobs(worker=sender.hostname)
        send(Task.RUN_JOBS)
    if CHORES in queues:
        # Messages that a killed worker had taken come back after an hour, or never.
        uploads.ask_for_checks(silent_for=timedelta(0))
        intake_folder.ask_for_copies(silent_for=timedelta(0))
        send(Task.SWEEP_FOLDERS)
