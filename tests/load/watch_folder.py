"""A watch folder of a whole server whose chores worker is killed again and again.

    python -m tests.load.watch_folder [--files 20] [--kills 6]

Files appear one after the other, some of them no audio, while `kill -9` takes the worker that takes
them. One JSON line: how many recordings there are and how often each (once, or it failed), what
lies in `done` and `failed`, and what is left.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path

from asr_engine.backends.scripted import encode_blocks, script
from tests.e2e.conftest import make_server
from tests.fakes.audio import wav_bytes
from tests.fakes.waiting import wait_until

TITLES = "SELECT title, count(*) FROM transcription_recording GROUP BY title"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--kills", type=int, default=6)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="transcribe-watched-"))
    server = make_server(
        TRANSCRIBE_WATCH_FOLDER=str(folder),
        TRANSCRIBE_WATCH_SETTLE_SECONDS="2",
    )
    server.environment["TRANSCRIBE_WATCH_OWNER"] = server.email
    names = [f"talk-{number}" for number in range(arguments.files)]
    try:
        server.start()
        server.wait_ready()
        begun = time.monotonic()
        for number, name in enumerate(names):
            is_audio = number % 5 != 4
            content = wav_bytes(encode_blocks(script(20, first=number * 20)))
            (folder / f"{name}.wav").write_bytes(content if is_audio else b"no audio" * 100)
            if number % max(1, arguments.files // arguments.kills) == 0:
                time.sleep(4)  # it may be anywhere by then
                wait_until(
                    lambda: server.process_id("chores"), timeout_s=60, what="the worker runs"
                )
                server.kill("chores")

        def are_put_away() -> bool:
            return len(list(folder.glob("done/*.wav")) + list(folder.glob("failed/*.wav"))) == len(
                names
            )

        wait_until(are_put_away, timeout_s=600, what="every file is in done or failed")
        counts = dict(server.rows(TITLES))
        result = {
            "files": len(names),
            "recordings": len(counts),
            "most_of_one": max(counts.values()),
            "done": len(list(folder.glob("done/*.wav"))),
            "failed": len(list(folder.glob("failed/*.wav"))),
            "reasons": len(list(folder.glob("failed/*.reason.txt"))),
            "left": len(list(folder.glob("*.wav"))) + len(list(folder.glob(".taken/*"))),
            "seconds": round(time.monotonic() - begun, 1),
        }
        print(json.dumps(result))  # noqa: T201  # the result
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(server.data_dir, ignore_errors=True)


if __name__ == "__main__":
    main()
