"""Six processes write to one SQLite database for half a minute; none meets a lock error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
WRITERS = 6
SECONDS = 30


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key != "TRANSCRIBE_DATABASE_URL"}
    return {
        **kept,
        "TRANSCRIBE_DATA_DIR": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
    }


def test_six_writers_meet_no_lock(environment: dict[str, str], tmp_path: Path) -> None:
    """As the processes of a server do: offsets, leases, progress, live finals, titles, deletes."""
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity=0"],
        cwd=ROOT,
        env=environment,
        check=True,
    )
    writers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.fakes.writer", str(number), str(SECONDS)],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
        )
        for number in range(WRITERS)
    ]
    reports = [json.loads(writer.communicate(timeout=200)[0]) for writer in writers]
    assert [report["errors"] for report in reports] == [[]] * WRITERS
    # All of them got their turn.
    assert min(report["rounds"] for report in reports) > 0
