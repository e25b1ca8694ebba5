"""Runs the unit tests of `static/js/live` (the pure parts) in Node, where there is one."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

NODE = shutil.which("node")
OLDEST = (20, 19)  # takes ES modules in .js without being told
TESTS = sorted(Path(__file__).parent.glob("live/*.test.js"))


def node_version() -> tuple[int, int]:
    if NODE is None:
        return (0, 0)
    said = subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.match(r"v(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else (0, 0)


@pytest.mark.skipif(
    node_version() < OLDEST, reason="there is no Node 20.19 or later to run the scripts' tests"
)
@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_scripts_pass_their_own_tests(path: Path) -> None:
    command = [str(NODE), "--test", str(path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
