"""The Celery application. Queues: `batch` (transcription) and `chores` (everything small)."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

app = Celery("transcribe")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["transcription"])
