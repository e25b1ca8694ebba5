"""Clients that know nothing but the public interfaces, against a whole server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from openai import OpenAI

from asr_engine.backends.scripted import encode_blocks, script, script_text
from tests.e2e.conftest import ROOT, Server
from tests.fakes.audio import wav_bytes

BLOCKS = script(40)


def test_openai_s_client_transcribes_whole_and_streamed(server: Server) -> None:
    token = server.manage("createtoken", server.email).strip()
    file = ("talk.wav", wav_bytes(encode_blocks(BLOCKS)))
    with OpenAI(base_url=f"{server.base_url}/v1", api_key=token, max_retries=0) as client:
        answer = client.audio.transcriptions.create(
            model="whisper-1",
            file=file,
            response_format="verbose_json",
            timestamp_granularities=["word"],
        )
        stream = client.audio.transcriptions.create(model="whisper-1", file=file, stream=True)
        deltas = [event.delta for event in stream if event.type == "transcript.text.delta"]
    assert answer.text == "".join(deltas) == script_text(BLOCKS)
    assert answer.words is not None
    assert len(answer.words) == 40
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
