"""`manage.py record_live`: the recorder. A second one stands by and takes over."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand
from redis import Redis

from transcription.runners.record_live import Recorder
from webapp.config import site_settings


class Command(BaseCommand):
    help = "Write live audio to disk and finals to the database, until SIGTERM."

    def handle(self, *args: Any, **options: Any) -> None:
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        settings = site_settings()
        # redis-py's own timeout of 5 s would end a wait for a busy server too early.
        with (
            Redis.from_url(settings.broker_url, socket_timeout=30) as broker,
            Redis.from_url(settings.audio_url, socket_timeout=30) as audio,
        ):
            Recorder(broker, audio).run(stopping.is_set)
