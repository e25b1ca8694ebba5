"""Clients that know nothing but the public interfaces, against a whole server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from asr_engine.backends.scripted import encode_blocks, script, script_text
from tests.e2e.conftest import ROOT, Server
from tests.fakes.audio import wav_bytes

BLOCKS = script(40)
PAGE = ROOT / "docs" / "openai.md"


def test_openai_s_client_transcribes_as_the_page_shows(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The example of the page, word for word: whole, then streamed."""
    (tmp_path / "talk.wav").write_bytes(wav_bytes(encode_blocks(BLOCKS)))
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.+?)```", PAGE.read_text(), flags=re.DOTALL)
    example = example.replace("https://captions.example.org", server.base_url)
    names: dict[str, Any] = {"token": server.manage("createtoken", server.email).strip()}
    exec(compile(example, str(PAGE), "exec"), names)  # noqa: S102  # our own page
    names["client"].close()
    whole, streamed = capsys.readouterr().out.split("\n")
    assert whole == streamed == script_text(BLOCKS)
    answer = names["answer"]
    assert len(answer.words) == 40
    assert "".join(segment.text for segment in answer.segments) == whole
    assert server.rows("SELECT count(*) FROM transcription_recording WHERE title = 'talk'") == [
        (0,)
    ]


def test_the_command_has_another_server_transcribe(server: Server, tmp_path: Path) -> None:
    """From a machine that has no server of its own: no settings, no database."""
    token = server.manage("createtoken", server.email).strip()
    path = tmp_path / "Gespräch.wav"
    path.write_bytes(wav_bytes(encode_blocks(BLOCKS)))
    elsewhere = {
        **{key: value for key, value in os.environ.items() if not key.startswith("TRANSCRIBE_")},
        "TRANSCRIBE_DATA_DIR": str(tmp_path / "elsewhere"),
        "TRANSCRIBE_SECRET_KEY": "unused",
    }
    command = ["manage.py", "transcribe", str(path), "--url", server.base_url, "--token", "-"]
    run = subprocess.run(
        [sys.executable, *command, "--format", "srt"],
        cwd=ROOT,
        env=elsewhere,
        input=token,
        capture_output=True,
        text=True,
        check=True,
    )
    words = [part for part in run.stdout.split() if part.startswith("w")]
    assert " ".join(words) == script_text(BLOCKS)
    assert not (tmp_path / "elsewhere" / "database.sqlite3").exists()
