"""`manage.py evaluate`: scores over a manifest without server or database."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from asr_engine.backends.scripted import encode_blocks, script, script_text
from asr_engine.config import EngineSettings
from asr_engine.ports import Candidate
from asr_engine.results import Segment
from tests.fakes.audio import wav_bytes
from transcription.management.commands import evaluate as command_module
from transcription.runners import evaluate as runner
from transcription.runners.evaluate_live import LiveResult

BLOCKS = script(20)
SETTINGS = EngineSettings(batch_backend="scripted", live_backend="scripted")


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_module, "engine_settings", lambda: SETTINGS)


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    (tmp_path / "talks").mkdir()
    for name in ("talks/good.wav", "talks/other.wav"):
        (tmp_path / name).write_bytes(wav_bytes(encode_blocks(BLOCKS)))
    (tmp_path / "silent.wav").write_bytes(wav_bytes(encode_blocks([None] * 30)))
    (tmp_path / "broken.wav").write_text("no audio " * 50)
    entries = [
        {"file": "talks/good.wav", "text": script_text(BLOCKS), "lang": "en", "ref_quality": "A"},
        {"file": "talks/other.wav", "text": "w0 w1 w2", "lang": "en", "ref_quality": "B"},
        {"file": "silent.wav", "text": "", "lang": None, "ref_quality": "A"},
        {"file": "broken.wav", "text": "w0 w1", "lang": "en", "ref_quality": "A"},
        {"file": "unknown.wav", "text": None, "lang": "en", "ref_quality": "A"},
    ]
    path = tmp_path / "manifest.jsonl"
    path.write_text("\n".join(map(json.dumps, entries)))
    return path


def run(manifest: Path, *flags: str) -> str:
    out = io.StringIO()
    call_command("evaluate", str(manifest), *flags, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def test_the_report_has_its_figures_at_the_top(manifest: Path) -> None:
    result: dict[str, Any] = json.loads(run(manifest, "--batch", "--report", "json"))
    assert {"wer", "cer", "rtfx", "by_lang", "by_folder", "files"} <= result.keys()
    assert result["road"] == "batch"
    assert len(result["files"]) == 4
    assert result["no_speech"] == {"files": 1, "files_with_text": 0, "words": 0}


def test_the_report_says_which_pass_it_scores_and_what_each_costs(manifest: Path) -> None:
    result = json.loads(run(manifest, "--batch", "--report", "json"))
    assert result["pass"] == "refined"
    assert result["seconds_per_minute"].keys() == {"draft", "refined"}
    assert result["by_folder"]["talks"]["seconds_per_minute"].keys() == {"draft", "refined"}
    draft = json.loads(run(manifest, "--batch", "--pass", "draft", "--report", "json"))
    assert draft["pass"] == "draft"
    assert draft["seconds_per_minute"]["refined"] == 0
    assert [one["text"] for one in draft["files"]] == [one["text"] for one in result["files"]]


def test_languages_that_mix_are_each_heard_in_their_own(
    manifest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    transcribe = runner.two_pass.transcribe

    def watched(path: Path, **named: Any) -> Any:
        asked.append(named["options"].mixes_languages)
        return transcribe(path, **named)

    monkeypatch.setattr(runner.two_pass, "transcribe", watched)
    manifest.write_text(manifest.read_text().replace('"lang": "en"', '"lang": "mul"', 1))
    run(manifest, "--folder", "talks")
    assert asked == [True, False]


def test_what_cannot_be_decoded_is_all_deleted_with_its_reason(manifest: Path) -> None:
    result = json.loads(run(manifest, "--report", "json"))
    (broken,) = [one for one in result["files"] if one["file"] == "broken.wav"]
    assert broken["deletions"] == broken["units"] > 0
    assert broken["problem"].startswith("This is not an audio")


def test_entries_are_chosen_by_folder_quality_and_number(manifest: Path) -> None:
    result = json.loads(run(manifest, "--folder", "talks", "--quality", "A", "--report", "json"))
    assert [one["file"] for one in result["files"]] == ["talks/good.wav"]
    assert result["wer"] == 0.0
    assert len(json.loads(run(manifest, "--limit", "2", "--report", "json"))["files"]) == 2


def test_people_get_lines(manifest: Path) -> None:
    text = run(manifest, "--folder", "talks", "--quality", "A")
    assert "WER 0.00%" in text
    assert "x real time" in text


def test_the_live_road_adds_its_delays(manifest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def live(
        path: Path, *, language: str | None, settings: EngineSettings, mode_ms: int
    ) -> LiveResult:
        assert settings is SETTINGS
        assert mode_ms == 0
        return LiveResult(
            text=script_text(BLOCKS),
            segments=(Segment(0, 1000, "w0"),),
            audio_ms=10_000,
            rtf=0.25,
            first_partial_ms=400,
            final_delays_ms=(900, 1100),
            finalisation_delays_ms=(30,),
            language=language,
        )

    monkeypatch.setattr(runner, "transcribe_live", live)
    result = json.loads(
        run(manifest, "--live", "--folder", "talks", "--quality", "A", "--report", "json")
    )
    assert result["road"] == "live"
    assert result["rtfx"] == 4.0
    assert result["first_partial_ms"] == {"p50": 400, "p95": 400}
    assert result["final_ms"] == {"p50": 900, "p95": 1100}


def test_a_list_of_terms_reaches_the_refine_pass(
    manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def watched(*args: Any, options: Any, **rest: Any) -> Any:
        asked.append(options.rescorer)
        return iter(())

    monkeypatch.setattr(runner.two_pass, "transcribe", watched)
    terms = tmp_path / "terms.txt"
    terms.write_text("Helstone, 5\n")
    run(manifest, "--glossary", str(terms), "--limit", "1")
    heard = [Candidate("At Helsten.", -0.3, 0.0, 1.0)]
    assert asked[0].hotwords(heard, "en") == "Helstone"
    with pytest.raises(CommandError, match="The glossary cannot be read"):
        run(manifest, "--glossary", str(tmp_path / "none.txt"))


def test_a_manifest_that_fits_nothing_or_is_none_is_a_sentence(
    manifest: Path, tmp_path: Path
) -> None:
    with pytest.raises(CommandError, match="No entry"):
        run(manifest, "--lang", "fr")
    with pytest.raises(CommandError, match="cannot be read"):
        run(tmp_path / "gone.jsonl")
