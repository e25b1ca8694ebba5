"""`manage.py evaluate --speakers`: who spoke when, against a manifest's turns."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from asr_engine.audio import FloatSamples
from asr_engine.backends.scripted import encode_blocks, script
from asr_engine.diarisation.port import Hearing, Turn
from tests.fakes.audio import wav_bytes
from transcription.management.commands import evaluate as command_module


class OneForTwo:
    """Hears one speaker for the first three seconds, and two where it is told of two."""

    name = "one for two"

    def listen(self, hearing: Hearing, samples: Iterable[FloatSamples]) -> Iterator[int]:
        yield sum(map(len, samples))

    def turns(self, hearing: Hearing, *, speakers: int | None) -> list[Turn]:
        return [Turn(0, 2000, "1"), Turn(2000, 3000, "1" if speakers is None else "2")]


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    (tmp_path / "talk.wav").write_bytes(wav_bytes(encode_blocks(script(20))))
    turns = [[0.0, 2.0, "ada"], [2.0, 3.0, "bob"]]
    entries = [
        {"file": "talk.wav", "text": None, "seconds": 3.0, "rttm": turns},
        {"file": "untold.wav", "text": "w0 w1", "seconds": 3.0},
    ]
    path = tmp_path / "manifest.jsonl"
    path.write_text("\n".join(map(json.dumps, entries)))
    return path


def run(manifest: Path, *flags: str) -> str:
    out = io.StringIO()
    call_command("evaluate", str(manifest), "--speakers", *flags, stdout=out)
    return out.getvalue()


def test_report_has_both_rates_of_the_entries_with_turns(
    manifest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_module, "speaker_diariser", lambda settings: OneForTwo())
    result = json.loads(run(manifest, "--report", "json"))
    # Of 2 s outside the collars the second speaker has 0.5.
    assert result["counted"]["der"] == pytest.approx(0.5 / 2)
    assert result["given"]["der"] == 0
    assert [(file["file"], file["found"]) for file in result["files"]] == [("talk.wav", 1)]
    assert "1 of 2" in run(manifest)


def test_a_diariser_must_be_configured(manifest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_module, "speaker_diariser", lambda settings: None)
    with pytest.raises(CommandError, match="ASR_SPEAKER_BACKEND"):
        run(manifest)


def test_a_manifest_without_turns_is_told(manifest: Path) -> None:
    with pytest.raises(CommandError, match="who speaks when"):
        run(manifest, "--folder", "elsewhere")
