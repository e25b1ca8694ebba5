"""Purges in processes that are killed, or that meet: files and rows agree in the end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.purger import EACH, POINTS

ROOT = Path(__file__).resolve().parents[3]


def run(data_dir: Path, *command: str) -> bytes:
    kept = {key: value for key, value in os.environ.items() if key != "TRANSCRIBE_DATABASE_URL"}
    environment = {
        **kept,
        "TRANSCRIBE_DATA_DIR": str(data_dir),
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
    }
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE
    ).stdout


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with an empty database."""
    data_dir = tmp_path_factory.mktemp("purges")
    run(data_dir, "manage.py", "migrate", "--verbosity=0")
    return data_dir


@pytest.fixture
def data_dir(migrated: Path, tmp_path: Path) -> Path:
    return shutil.copytree(migrated, tmp_path / "data")


def purges(data_dir: Path, how: str) -> dict[str, Any]:
    said = run(data_dir, "-m", "tests.fakes.purger", how)
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


def check_everything_is_as_it_should(found: dict[str, Any]) -> None:
    kept = dict.fromkeys(("audio", "trash", "keep", "keep held"), EACH)
    assert found["left"] == kept
    assert found["trashed"] == {"trash": EACH}
    assert found["without_audio"] == {"audio": EACH}
    assert found["folders_agree"]
    assert (found["remains"], found["open"]) == (0, 0)
    # Each thing once, in the log and in the figures.
    assert found["told"] == {"purged delete": EACH, "purged audio": EACH, "trashed trash": EACH}
    assert found["runs_told"] == len(found["counts"])
    (counts,) = [counts for counts in found["counts"] if counts]
    assert counts == {
        "audio": EACH,
        "audio_bytes": 10 * EACH,
        "trashed": EACH,
        "deleted": EACH,
        "deleted_bytes": 10 * EACH,
    }


def test_killed_anywhere_the_next_one_completes_it(data_dir: Path) -> None:
    found = purges(data_dir, "killed")
    assert found["ends"] == [-9] * len(POINTS) + [0]
    check_everything_is_as_it_should(found)


def test_four_at_once_do_everything_once(data_dir: Path) -> None:
    found = purges(data_dir, "together")
    assert found["ends"] == [0] * 4
    check_everything_is_as_it_should(found)
