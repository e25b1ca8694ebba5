"""The example client against a whole server: events as described, words where they belong."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from asr_engine.audio import SAMPLE_RATE
from asr_engine.backends.scripted import encode_blocks, script, script_text
from tests.chaos.network import network_to
from tests.e2e.conftest import ROOT, Server
from tests.fakes.asyncapi import matching

TELEPHONE_RATE = 8000
CALLER, DESK = script(8, first=10), script(8, first=200)


@pytest.fixture(scope="module")
def token(server: Server) -> str:
    answer = server.manage("createtoken", "example", "--service", "--scope", "live:write")
    return next(word for word in answer.split() if word.startswith("tr_"))


def telephone(blocks: list[int | None]) -> Any:
    return np.asarray(encode_blocks(blocks, is_telephone=True))[::2]


def speak(server: Server, token: str, path: Path, *options: str) -> list[dict[str, Any]]:
    """What the example prints; each event must be one that is described."""
    run = subprocess.run(
        [
            sys.executable,
            "docs/examples/stream_client.py",
            f"ws://localhost:{server.port}",
            str(path),
            *options,
        ],
        cwd=ROOT,
        env={**os.environ, "TRANSCRIBE_TOKEN": token},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    events = [json.loads(line) for line in run.stdout.splitlines()]
    assert [event for event in events if len(matching("tell", event)) != 1] == []
    return events


def text_of(events: list[dict[str, Any]], channel: int | None = None) -> str:
    finals = [event for event in events if event["type"] == "final"]
    return " ".join(event["text"] for event in finals if event.get("channel") == channel)


def once(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Finals in the order of their utterances, told live or afterwards."""
    finals = {}
    for event in events:
        for told in event["events"] if event["type"] == "history" else [event]:
            if told["type"] == "final":
                key = (event["channel"], told["utterance"])
                finals[key] = told | {"channel": event["channel"]}
    return [finals[key] for key in sorted(finals)]


def test_both_sides_of_a_call_are_told_apart(server: Server, token: str, tmp_path: Path) -> None:
    path = tmp_path / "call.wav"
    both = np.stack([telephone(CALLER), telephone(DESK)], axis=1)
    soundfile.write(path, both, TELEPHONE_RATE, subtype="PCM_16")
    events = speak(server, token, path, "--speakers", "Caller", "Desk", "--title", "Order 7")
    assert text_of(events, 0) == script_text(CALLER)
    assert text_of(events, 1) == script_text(DESK)
    speakers = {event["speaker"] for event in events if event["type"] == "final"}
    assert speakers == {"Caller", "Desk"}
    titles = server.rows("select title from transcription_livesession where title like 'Order 7%'")
    assert sorted(titles) == [("Order 7 · Caller",), ("Order 7 · Desk",)]


@pytest.mark.parametrize("encoding", ["mulaw", "alaw"])
def test_telephone_audio_is_understood(
    server: Server, token: str, tmp_path: Path, encoding: str
) -> None:
    path = tmp_path / "call.raw"
    subtype = {"mulaw": "ULAW", "alaw": "ALAW"}[encoding]
    soundfile.write(path, telephone(CALLER), TELEPHONE_RATE, format="RAW", subtype=subtype)
    events = speak(server, token, path, "--encoding", encoding)
    assert text_of(events) == script_text(CALLER)
    acknowledged = [event["sample"] for event in events if event["type"] == "ack"]
    assert max(acknowledged) <= len(telephone(CALLER))


def test_wide_band_is_understood(server: Server, token: str, tmp_path: Path) -> None:
    path = tmp_path / "talk.wav"
    blocks = script(8, first=5000)
    soundfile.write(path, encode_blocks(blocks), SAMPLE_RATE, subtype="PCM_16")
    assert text_of(speak(server, token, path)) == script_text(blocks)


async def test_a_lost_connection_loses_no_word(server: Server, token: str, tmp_path: Path) -> None:
    path = tmp_path / "call.wav"
    both = np.stack([telephone(CALLER), telephone(DESK)], axis=1)
    soundfile.write(path, both, TELEPHONE_RATE, subtype="PCM_16")
    async with network_to(server.port) as network:
        client = await asyncio.create_subprocess_exec(
            sys.executable,
            "docs/examples/stream_client.py",
            f"ws://localhost:{network.port}",
            str(path),
            cwd=ROOT,
            env={**os.environ, "TRANSCRIBE_TOKEN": token},
            stdout=asyncio.subprocess.PIPE,
        )
        assert client.stdout is not None
        events, is_cut = [], False
        async with asyncio.timeout(120):
            async for line in client.stdout:
                events.append(json.loads(line))
                if events[-1]["type"] == "partial" and not is_cut:
                    is_cut = True
                    await network.cut(0.3)
            assert await client.wait() == 0
    ready = [event["sessions"] for event in events if event["type"] == "ready"]
    assert ready == [ready[0]] * 2
    assert text_of(once(events), 0) == script_text(CALLER)
    assert text_of(once(events), 1) == script_text(DESK)


def test_a_wrong_token_is_said_in_a_sentence(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "talk.wav"
    soundfile.write(path, np.zeros(1600), SAMPLE_RATE, subtype="PCM_16")
    with pytest.raises(AssertionError, match=r"send a valid token[\s\S]*4401"):
        speak(server, "tr_unknown", path)
