"""Whether this process was asked to end, known at once.

Python runs a signal's handler between two bytecodes of the main thread, and a model may keep that
thread for many seconds. What the interpreter writes at the moment of the signal is read here by a
thread meanwhile.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Final

ENDING: Final = threading.Event()
SIGNALS: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGQUIT})


def watch_for_end(ending: threading.Event = ENDING) -> None:
    """Set `ending` when a signal asks this process to end. Its handlers stay as they are.

    Main thread only. The signals need handlers in Python, as Celery's workers set them.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader, ending), name="ending", daemon=True).start()


def _watch(reader: int, ending: threading.Event) -> None:
    while not SIGNALS.intersection(os.read(reader, 64)):
        pass
    ending.set()
