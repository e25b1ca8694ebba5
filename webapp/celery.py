"""The Celery application. Queues: `batch` (transcription) and `chores` (everything small).

    celery -A webapp.celery worker -Q batch --pool=solo -n jobs@%h
    celery -A webapp.celery worker -Q chores --pool=threads --concurrency=4 -n chores@%h

The batch worker is solo, since models do not survive a fork; start one per GPU, each with a node
name of its own that stays the same over restarts: by that name it takes back at once what its dead
predecessor held. The chores worker runs the beat in a thread of its own, so nothing outlives it.
`BATCH_WORKER` and `CHORES_WORKER` are these command lines for the supervisor.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

_WORKER = (sys.executable, "-m", "celery", "-A", "webapp.celery", "worker", "--loglevel=INFO")
_ALONE = ("--without-gossip", "--without-mingle")
BATCH_WORKER: Final = (*_WORKER, "-Q", "batch", "--pool=solo", "-n", "jobs@%h", *_ALONE)
CHORES_WORKER: Final = (
    *_WORKER,
    *("-Q", "chores", "--pool=threads", "--concurrency=4", "-n", "chores@%h"),
    *_ALONE,
)

app = Celery("transcribe")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["transcription"])
