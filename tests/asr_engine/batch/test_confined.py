"""A child with limits cannot take the server with it, and says what was wrong."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from asr_engine.batch import confined
from asr_engine.errors import AudioError, BrokenAudioError, NotAudioError


def answering(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let the child run `code` instead of a module."""
    run = subprocess.run

    def instead(command: list[str], **kwargs: object) -> object:
        return run([sys.executable, "-c", code, *command[3:]], **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr(confined.subprocess, "run", instead)


def test_a_child_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(
        monkeypatch,
        "import sys; from asr_engine.batch import confined;"
        "confined.answer(lambda: {'arguments': sys.argv[1:]})",
    )
    assert confined.run("module", "a b", "--c") == {"arguments": ["a b", "--c"]}


@pytest.mark.parametrize("death", ["import os; os.abort()", "print('not json')", "print('{}')"])
def test_a_child_that_dies_or_talks_nonsense_means_a_broken_recording(
    monkeypatch: pytest.MonkeyPatch, death: str
) -> None:
    answering(monkeypatch, death)
    with pytest.raises(BrokenAudioError):
        confined.run("module")


def test_a_child_that_does_not_end_means_a_broken_recording(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hang(command: list[str], **kwargs: object) -> object:
        raise subprocess.TimeoutExpired(command, 1)

    monkeypatch.setattr(confined.subprocess, "run", hang)
    with pytest.raises(BrokenAudioError):
        confined.run("module")


LIMITED = """
import json, resource, sys
from pathlib import Path
from asr_engine.batch import confined

def work():
    Path(sys.argv[1]).write_bytes(bytes(100))
    Path(sys.argv[2]).write_bytes(bytes(101))

confined.answer(work, written_bytes=100)
limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE)]
sys.stdout.write(json.dumps(limits))
"""


def test_a_child_has_bounded_memory_and_writes_no_larger_file_than_it_may(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    child = subprocess.run(
        [sys.executable, "-c", LIMITED, str(small), str(large)],
        capture_output=True,
        text=True,
        check=True,
    )
    refused = json.dumps({"errno": errno.EFBIG})
    memory, file_bytes = json.loads(child.stdout.removeprefix(refused))
    assert memory <= confined.MEMORY_LIMIT_BYTES
    assert file_bytes == 100
    assert (small.stat().st_size, large.stat().st_size) == (100, 100)


@pytest.mark.parametrize(
    ("raised", "error"),
    [
        ("NotAudioError()", NotAudioError),
        ("BrokenAudioError('words')", BrokenAudioError),
        ("MemoryError()", BrokenAudioError),
    ],
)
def test_the_same_error_comes_back(
    monkeypatch: pytest.MonkeyPatch, raised: str, error: type[AudioError]
) -> None:
    answering(
        monkeypatch,
        "from asr_engine.batch import confined\n"
        "from asr_engine.errors import *\n"
        f"def work(): raise {raised}\n"
        "confined.answer(work)",
    )
    with pytest.raises(error):
        confined.run("module")


def test_a_full_disk_comes_back_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, f"print('{{\"errno\": {errno.ENOSPC}}}')")
    with pytest.raises(OSError, match="space") as caught:
        confined.run("module")
    assert caught.value.errno == errno.ENOSPC
