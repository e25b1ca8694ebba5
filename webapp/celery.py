"""The Celery application. Queues: `batch` (transcription) and `chores` (everything small).

    celery -A webapp.celery worker -Q batch --pool=solo -n jobs@%h
    celery -A webapp.celery worker -Q chores --pool=threads -c4 -n chores@%h
    celery -A webapp.celery beat

The batch worker is solo, since models do not survive a fork. Start one per GPU, each with a node
name of its own that stays the same over restarts: by that name it takes back at once what its dead
predecessor held. One beat is enough; two do no harm. Four threads of chores: long checks of uploads
must not keep the reaper waiting.
"""

from __future__ import annotations

import os
from typing import Any, Final

from celery import Celery

from transcription.queue import QUEUES, Task
from webapp import beats  # noqa: F401  # its signals start the signs of life
from webapp.config import site_settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

EVERY_S: Final = {
    Task.REAP: 10,
    Task.SWEEP: 30,
    Task.SWEEP_FOLDERS: 3600,
    Task.FORGET_LOGINS: 3600,
    Task.FORGET_AUDIT: 3600,
    Task.PURGE: 600,
    Task.SEND_WEBHOOKS: 10,
    Task.FORGET_DELIVERIES: 3600,
}
"""The beat. A message that nobody took before the next one is dropped."""
WATCH_EVERY_S: Final = 5
"""Looks at the watch folder, where there is one."""


def _entry(task: Task, every_s: int) -> dict[str, Any]:
    return {
        "task": task.value,
        "schedule": every_s,
        "options": {"queue": QUEUES[task], "expires": every_s},
    }


app = Celery("transcribe")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.beat_schedule = {task.value: _entry(task, every_s) for task, every_s in EVERY_S.items()}
if site_settings().watch_folder:
    app.conf.beat_schedule[Task.WATCH_FOLDER.value] = _entry(Task.WATCH_FOLDER, WATCH_EVERY_S)
app.autodiscover_tasks(["transcription"])
