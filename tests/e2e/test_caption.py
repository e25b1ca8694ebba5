"""`manage.py caption` against a whole server, on audio that shows what was lost."""

from __future__ import annotations

import json
from pathlib import Path

import soundfile

from asr_engine.audio import SAMPLE_RATE
from asr_engine.backends import scripted
from tests.e2e.conftest import Server


def test_caption_streams_a_file_and_reports(server: Server, tmp_path: Path) -> None:
    path, text = tmp_path / "speech.wav", tmp_path / "speech.txt"
    blocks = scripted.script(24)
    soundfile.write(path, scripted.encode_blocks(blocks), SAMPLE_RATE, subtype="PCM_16")
    text.write_text(scripted.script_text(blocks))
    options = ("--clients", "2", "--viewers", "3", "--expect", str(text), "--report", "json")
    report = json.loads(server.manage("caption", str(path), *options))
    assert report["streams"] == 2
    assert report["refused"] == []
    assert report["finals"] == 6
    assert report["text"] == {"right": 2, "wrong": 0, "words_lost": 0, "words_doubled": 0}
    assert report["stored"] == report["text"] | {"unfinished": 0}
    assert report["lost_events"] == 0
    assert report["unacknowledged_ms"] == 0
    assert len(report["recordings"]) == 2
    assert report["time_to_first_partial_s"]["p50"] > 0
    assert report["lag_s"]["p95"] >= report["lag_s"]["p50"]
    assert report["added_delay_s"]["events"] > 0
    viewers = report["viewers"]
    assert (viewers["viewers"], viewers["refusals"]) == (3, {})
    assert (viewers["lost_finals"], viewers["lost_events"], viewers["doubled_events"]) == (0, 0, 0)


def test_caption_prints_what_was_said(server: Server, tmp_path: Path) -> None:
    blocks = scripted.script(8)
    path = tmp_path / "speech.wav"
    soundfile.write(path, scripted.encode_blocks(blocks), SAMPLE_RATE, subtype="PCM_16")
    assert scripted.script_text(blocks) in server.manage("caption", str(path))
