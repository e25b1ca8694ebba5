"""A real batch worker over the scripted model, which notes each batch that it encodes.

    python -m tests.fakes.batch_worker NOTES STEP STOP_AT

Each encoded window's first sample is a line in NOTES. At batch STOP_AT of STEP (`encode`, `refine`)
it hangs in the model, with its lease kept, until somebody kills it; 0 never hangs.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from asr_engine.backends.scripted import ScriptedBatchModel
from asr_engine.ports import DecodeOptions, Window
from webapp.celery import app


def note_batches(notes: Path, step: str, stop_at: int) -> None:
    encode, decode = ScriptedBatchModel.encode, ScriptedBatchModel.decode
    batches: Counter[str] = Counter()

    def count(name: str) -> None:
        batches[name] += 1
        if name == step and batches[name] == stop_at:
            threading.Event().wait()

    def noted(self: ScriptedBatchModel, windows: Sequence[Window], **room: Any) -> object:
        count("encode")
        with notes.open("a") as file:
            file.writelines(f"{window.start_sample}\n" for window in windows)
        return encode(self, windows, **room)

    def counted(self: ScriptedBatchModel, *arguments: Any, **named: Any) -> Any:
        options: DecodeOptions = named["options"]
        count("refine" if options.candidates > 1 else "draft")
        return decode(self, *arguments, **named)

    ScriptedBatchModel.encode = noted  # type: ignore[method-assign]
    ScriptedBatchModel.decode = counted  # type: ignore[method-assign]


if __name__ == "__main__":
    note_batches(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    # `-n` stays the same over restarts: that is how it knows what its dead predecessor held.
    app.worker_main(
        [
            *("worker", "-Q", "batch", "--pool=solo", "-n", "jobs-test@%h", "--loglevel=WARNING"),
            *("--without-gossip", "--without-mingle"),
        ]
    )
