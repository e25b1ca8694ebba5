"""The glossary from the command line: what is exported can be imported."""

from __future__ import annotations

import io
import sys
from io import StringIO
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from tests.fakes.pages import make_recording, write_transcript
from transcription.models import GlossaryTerm, RevisionKind
from webapp.accounts.models import User


def glossary(*arguments: str) -> str:
    output = StringIO()
    call_command("glossary", *arguments, stdout=output)
    return output.getvalue()


def test_a_list_is_imported_listed_and_exported(tmp_path: Path, db: None) -> None:
    file = tmp_path / "people.csv"
    file.write_text("\ufeffphrase,weight\nHelstone,5\n# mill owners\nThornton\n", encoding="utf-8")
    glossary("import", str(file))
    assert glossary("list") == "Helstone, 5\nThornton\n"
    exported = glossary("export")
    assert exported == "phrase,weight\nHelstone,5\nThornton,3\n"
    GlossaryTerm.objects.all().delete()
    file.write_text(exported)
    glossary("import", str(file))
    assert glossary("export") == exported


def test_what_is_exported_is_imported_as_it_was(tmp_path: Path, db: None) -> None:
    phrases = [
        "Catch; 22",
        "A; 2",
        "#MeToo",
        '"Al" Y',
        "a, b",
        "王小明，5",
        "10,000",
        "Windows, 11",
    ]
    GlossaryTerm.objects.bulk_create(GlossaryTerm(phrase=phrase) for phrase in phrases)
    file = tmp_path / "glossary.csv"
    for action in ("export", "list"):
        written = glossary(action)
        file.write_text(written, encoding="utf-8")
        assert glossary("import", str(file), "--replace") == "0 added, 0 changed, 0 deleted\n"
        assert glossary(action) == written


@pytest.mark.parametrize("text", ["", "\n# nobody\n", "phrase,weight\n"])
def test_an_empty_list_replaces_nothing(tmp_path: Path, db: None, text: str) -> None:
    GlossaryTerm.objects.create(phrase="Hale")
    file = tmp_path / "people.csv"
    file.write_text(text)
    for arguments in ((), ("--replace",)):
        with pytest.raises(CommandError, match="The list is empty"):
            glossary("import", str(file), *arguments)
    assert glossary("list") == "Hale\n"


def test_the_answer_is_all_that_is_printed(
    tmp_path: Path, db: None, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "people.csv"
    file.write_text("Hale\n")
    assert glossary("import", str(file)) == "1 added, 0 changed, 0 deleted\n"
    assert capsys.readouterr() == ("", "")
    assert caplog.records == []


def test_a_recording_has_its_own(
    alice: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = make_recording(alice, "Weekly")
    GlossaryTerm.objects.create(recording=recording, phrase="Moses")
    GlossaryTerm.objects.create(phrase="Hale")
    monkeypatch.setattr(sys, "stdin", io.StringIO("Margaret\n"))
    glossary("import", "-", "--replace", "--recording", str(recording.id))
    assert glossary("list", "--recording", str(recording.id)) == "Margaret\n"
    assert glossary("list") == "Hale\n"


def test_what_cannot_be_read_is_said(tmp_path: Path, db: None) -> None:
    file = tmp_path / "list.txt"
    with pytest.raises(CommandError, match="cannot be read"):
        glossary("import", str(file))
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(CommandError, match="UTF-8"):
        glossary("import", str(file))
    file.write_text("Hale\n?")
    with pytest.raises(CommandError, match="Line 2"):
        glossary("import", str(file))
    for unknown in (str(uuid4()), "nonsense"):
        with pytest.raises(CommandError, match="no recording"):
            glossary("list", "--recording", unknown)
    assert not GlossaryTerm.objects.exists()


def test_past_transcripts_are_written_for_a_language_model(alice: User) -> None:
    revision = write_transcript(make_recording(alice, "Weekly"), "Good morning, Mr. Hale!")
    revision.kind, revision.language = RevisionKind.REFINED, "en"
    revision.save()
    assert glossary("text", "--language", "en") == "good morning mr hale\n"
    assert glossary("text", "--language", "zh") == ""
