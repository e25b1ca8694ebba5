"""Looks at the watch folder, and ends as by kill -9 once its first upload is made.

python -m tests.fakes.watch_folder_process MEDIA_ROOT
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import django

django.setup()

from django.conf import settings  # noqa: E402  # after Django is set up

from transcription.services import watch_folder  # noqa: E402


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    settings.MEDIA_ROOT = sys.argv[1]
    watch_folder._Look._note_sent = die  # type: ignore[method-assign]
    watch_folder.take_from_watch_folder()
