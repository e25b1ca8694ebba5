"""A real batch worker over the scripted model, which notes each batch that it encodes.

    python -m tests.fakes.batch_worker NOTES STOP_AT

Each encoded window's first sample is a line in NOTES. After STOP_AT batches it hangs in the model,
with its lease kept, until somebody kills it; 0 never hangs.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from asr_engine.backends.scripted import ScriptedBatchModel
from asr_engine.ports import Window
from webapp.celery import app


def note_batches(notes: Path, stop_at: int) -> None:
    encode = ScriptedBatchModel.encode
    batches = 0

    def noted(self: ScriptedBatchModel, windows: Sequence[Window]) -> object:
        nonlocal batches
        batches += 1
        if batches == stop_at:
            threading.Event().wait()
        with notes.open("a") as file:
            file.writelines(f"{window.start_sample}\n" for window in windows)
        return encode(self, windows)

    ScriptedBatchModel.encode = noted  # type: ignore[method-assign]


if __name__ == "__main__":
    note_batches(Path(sys.argv[1]), int(sys.argv[2]))
    # `-n` stays the same over restarts: that is how it knows what its dead predecessor held.
    app.worker_main(
        [
            *("worker", "-Q", "batch", "--pool=solo", "-n", "jobs-test@%h", "--loglevel=WARNING"),
            *("--without-gossip", "--without-mingle"),
        ]
    )
