"""Scores count what people would call errors, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asr_engine.evaluation import (
    Entry,
    ErrorCount,
    FileScore,
    comparable_units,
    count_errors,
    read_manifest,
    report,
)


def entry(file: str, text: str | None, language: str | None = "en") -> Entry:
    return Entry(file, Path(file), text, language, 10.0, "A", text is not None)


def test_case_punctuation_and_spelling_do_not_count() -> None:
    assert count_errors("mister hale's colour", "Mr. Hale's color!", "en").errors == 0


def test_each_kind_of_error_is_counted() -> None:
    assert count_errors("a big black cat sat", "big black dog sat down", "en") == ErrorCount(
        5, 1, 1, 1
    )


def test_nothing_heard_is_all_deleted_and_anything_on_silence_inserted() -> None:
    assert count_errors("three small words", "", "en") == ErrorCount(3, 0, 3, 0)
    assert count_errors("", "thank you", "en") == ErrorCount(0, 0, 0, 2)


def test_chinese_is_scored_by_characters_whatever_the_script() -> None:
    assert comparable_units("结合 指标,看", "zh") == ["结", "合", "指", "标", "看"]
    assert count_errors("结合指标看", "結合指標看。", "zh").errors == 0
    assert count_errors("结合指标看", "結合指標", "zh") == ErrorCount(5, 0, 1, 0)


def test_other_languages_are_scored_by_words() -> None:
    assert count_errors("guten morgen zusammen", "Guten Morgen, zusammen.", "de").errors == 0


def test_a_report_sums_errors_and_not_rates() -> None:
    scores = [
        FileScore(entry("a/1.wav", "we all went home"), "we all went home", 10.0, 1.0),
        FileScore(entry("a/2.wav", "early"), "late", 10.0, 1.0),
        FileScore(entry("b/3.wav", "今天开会", "zh"), "今天会", 10.0, 2.0),
        FileScore(entry("b/4.wav", "", None), "thank you", 10.0, 1.0),
    ]
    result = report(scores, road="batch")
    assert result["wer"] == 0.2
    assert result["cer"] == 0.25
    assert result["rtfx"] == 8.0
    assert result["road"] == "batch"
    assert result["by_lang"]["zh"] == {"files": 1, "audio_s": 10.0, "wer": None, "cer": 0.25}
    assert result["by_folder"]["a"]["wer"] == 0.2
    assert result["no_speech"] == {"files": 1, "files_with_text": 1, "words": 2}
    assert [one["file"] for one in result["files"]] == ["a/1.wav", "a/2.wav", "b/3.wav", "b/4.wav"]
    json.dumps(result)


def test_a_report_of_nothing_has_no_rates() -> None:
    result = report([])
    assert (result["wer"], result["cer"], result["rtfx"]) == (None, None, None)


def test_a_manifest_names_its_files_relative_to_itself(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.jsonl"
    lines = [
        {"file": "en/a.flac", "text": "hello", "lang": "en", "seconds": 2, "ref_quality": "A"},
        {"file": "b.flac", "text": None},
        {"file": "c.flac", "text": "raw", "score": False},
    ]
    manifest.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    first, second, third = read_manifest(manifest)
    assert first.path == tmp_path / "en" / "a.flac"
    assert first.folder == "en"
    assert first.is_scored
    assert not second.is_scored
    assert not third.is_scored


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.jsonl"
    manifest.write_text('{"file": "a"}\nnot json\n')
    with pytest.raises(ValueError, match="line 2"):
        list(read_manifest(manifest))
