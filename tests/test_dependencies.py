"""The dependency audit fails for what is known to be vulnerable, and says what it could not ask."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import dependencies
from tests.dependencies import ask, main, verdict

CLEAN = {"name": "django", "version": "5.2.19", "vulns": []}
HURT = {
    "name": "pillow",
    "version": "9.0.0",
    "vulns": [{"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["9.0.1"]}],
}
UNKNOWN = {"name": "torch", "skip_reason": "not found"}


def test_known_vulnerability_fails_and_names_the_version_that_mends_it() -> None:
    status, lines = verdict([CLEAN, HURT, UNKNOWN])
    assert status == 1
    assert lines[0] == "pillow 9.0.0: PYSEC-1, mended in 9.0.1"
    assert lines[1:] == ["2 of 3 packages were audited.", "The service does not know: torch."]


def test_clean_and_accepted_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    assert verdict([CLEAN]) == (0, ["1 of 1 packages were audited."])
    monkeypatch.setitem(dependencies.ACCEPTED, "CVE-1", "that part is not used")
    assert verdict([CLEAN, HURT])[0] == 0


@pytest.mark.parametrize("nothing", [[], [UNKNOWN]])
def test_what_no_service_knows_is_not_called_clean(nothing: list[dict[str, Any]]) -> None:
    status, lines = verdict(nothing)
    assert status == 0
    assert "No dependency was audited" in lines[0]


def test_next_service_is_asked_where_the_first_knows_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {"pypi": [UNKNOWN], "osv": [HURT]}
    monkeypatch.setattr(dependencies, "ask", answers.__getitem__)
    monkeypatch.setattr(sys, "argv", ["dependencies"])
    assert main() == 1
    assert "PYSEC-1" in capsys.readouterr().out


def test_service_that_does_not_answer_is_no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        assert "pip_audit" in command
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(subprocess, "run", fail)
    assert ask("osv") == []

    def hang(command: list[str], **_: Any) -> None:
        Path(command[command.index("--output") + 1]).touch()
        raise subprocess.TimeoutExpired(command, 1)

    monkeypatch.setattr(subprocess, "run", hang)
    assert ask("osv") == []
