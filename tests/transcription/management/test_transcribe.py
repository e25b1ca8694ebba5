"""`manage.py transcribe`: the batch road without server or database."""

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
from tests.fakes.audio import wav_bytes
from transcription.management.commands import transcribe as command_module
from transcription.runners.remote_transcription import RemoteError

BLOCKS = script(30)


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = EngineSettings(batch_backend="scripted")
    monkeypatch.setattr(command_module, "engine_settings", lambda: settings)


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    path = tmp_path / "talk.wav"
    path.write_bytes(wav_bytes(encode_blocks(BLOCKS)))
    return path


def run(*files: Path, **options: Any) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("transcribe", *map(str, files), stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


def words(text: str) -> str:
    return " ".join(part for part in text.split() if part.startswith("w"))


def test_the_transcript_is_printed(speech: Path) -> None:
    out, err = run(speech)
    assert words(out) == script_text(BLOCKS)
    assert "segments" in err


@pytest.mark.parametrize("options", [{"draft_only": True}, {"language": "mul"}])
def test_one_pass_or_both_write_each_word_once(speech: Path, options: dict[str, Any]) -> None:
    assert words(run(speech, **options)[0]) == script_text(BLOCKS)


@pytest.mark.parametrize("extension", ["txt", "srt", "vtt", "json"])
def test_each_format_is_written_beside_the_others(
    speech: Path, tmp_path: Path, extension: str
) -> None:
    folder = tmp_path / "made" / "here"
    run(speech, format=extension, output_dir=folder)
    (path,) = folder.iterdir()
    assert path.name == f"talk.{extension}"
    text = path.read_text(encoding="utf-8")
    if extension == "json":
        assert json.loads(text)["language"] == "en"
        text = json.loads(text)["text"]
    assert words(text) == script_text(BLOCKS)


def test_one_bad_recording_does_not_stop_the_others(speech: Path, tmp_path: Path) -> None:
    broken = tmp_path / "notes.wav"
    broken.write_text("not audio " * 100)
    folder = tmp_path / "out"
    err = io.StringIO()
    with pytest.raises(CommandError, match="2 of 3"):
        call_command(
            "transcribe",
            str(broken),
            str(tmp_path / "gone.wav"),
            str(speech),
            output_dir=folder,
            stdout=io.StringIO(),
            stderr=err,
        )
    assert (folder / "talk.txt").exists()
    assert f"{broken}: This is not an audio or video recording that we can read." in err.getvalue()
    assert "gone.wav: No such file or directory." in err.getvalue()
    assert "Traceback" not in err.getvalue()


def test_recordings_of_one_name_do_not_overwrite_each_other(speech: Path, tmp_path: Path) -> None:
    other = tmp_path / "talk.flac"
    other.write_bytes(speech.read_bytes())
    folder = tmp_path / "out"
    run(speech, other, output_dir=folder)
    assert sorted(path.name for path in folder.iterdir()) == ["talk.flac.txt", "talk.wav.txt"]


def test_silence_is_an_empty_transcript_and_no_failure(tmp_path: Path) -> None:
    path = tmp_path / "silence.wav"
    path.write_bytes(wav_bytes(encode_blocks([None] * 50)))
    out, err = run(path, format="srt")
    assert out.strip() == ""
    assert "nobody speaks" in err


def test_a_list_of_terms_reaches_the_refine_pass(
    speech: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def watched(path: Path, *, options: Any, **rest: Any) -> Any:
        asked.append(options.rescorer)
        return iter(())

    monkeypatch.setattr(command_module.two_pass, "transcribe", watched)
    terms = tmp_path / "terms.txt"
    terms.write_text("Helstone, 5\n")
    run(speech, glossary=terms)
    run(speech)
    heard = [Candidate("At Helsten.", -0.3, 0.0, 1.0)]
    assert asked[0].hotwords(heard, "en") == "Helstone"
    assert asked[1] is None


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"?"])
def test_a_list_that_is_none_is_a_sentence(
    speech: Path, tmp_path: Path, content: bytes | None
) -> None:
    terms = tmp_path / "terms.txt"
    if content is not None:
        terms.write_bytes(content)
    with pytest.raises(CommandError, match="The glossary cannot be read"):
        run(speech, glossary=terms)


def test_an_unknown_language_is_a_sentence(speech: Path) -> None:
    with pytest.raises(CommandError, match="does not know this language"):
        run(speech, language="tlh")


def test_missing_weights_are_named_with_the_mend(
    speech: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = EngineSettings(batch_backend="whisper", model_dir=tmp_path / "empty")
    monkeypatch.setattr(command_module, "engine_settings", lambda: settings)
    with pytest.raises(CommandError, match="models fetch"):
        run(speech)


# On another server --------------------------------------------------------------------------------


def test_a_server_s_transcript_is_written_like_our_own(
    speech: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without models and without a database: `pytest` would refuse the latter."""
    asked: list[tuple[object, ...]] = []

    class Server:
        def __init__(self, url: str, token: str, **_: object) -> None:
            asked.append((url, token))

        def __enter__(self) -> Server:
            return self

        def __exit__(self, *_: object) -> None: ...

        def transcribe(self, path: Path, **options: object) -> str:
            if path.name == "bad.wav":
                raise RemoteError("The server does not like it.")
            asked.append((path.name, *options.values()))
            return "1\n"

    monkeypatch.setattr(command_module, "RemoteServer", Server)
    monkeypatch.setattr(command_module.sys, "stdin", io.StringIO("tr_secret\n"))
    folder, err = tmp_path / "out", io.StringIO()
    with pytest.raises(CommandError, match="1 of 2"):
        call_command(
            *("transcribe", str(tmp_path / "bad.wav"), str(speech), "--url", "https://there"),
            *("--token", "-", "--format", "srt", "--language", "de", "--draft-only"),
            output_dir=folder,
            stderr=err,
        )
    assert ("https://there", "tr_secret") in asked
    assert asked[-1] == ("talk.wav", "srt", "de", True)
    assert (folder / "talk.srt").read_text() == "1\n"
    assert "bad.wav: The server does not like it." in err.getvalue()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"url": "https://there"}, "give --token"),
        ({"token": "tr_x"}, "goes with --url"),
        ({"url": "https://there", "token": "tr_x", "glossary": Path("a")}, "leave out --glossary"),
        ({"url": "there", "token": "tr_x"}, "could not be transcribed"),
    ],
)
def test_what_does_not_go_together_is_a_sentence(
    options: dict[str, Any], sentence: str, speech: Path
) -> None:
    with pytest.raises(CommandError, match=sentence):
        run(speech, **options)
