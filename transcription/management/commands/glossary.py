"""`manage.py glossary`: names and terms, and past transcripts for a language model."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from transcription.errors import ProductError
from transcription.models import Recording
from transcription.services import glossary


class Command(BaseCommand):
    help = "Import, list and export names and terms; write past transcripts for a language model."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        importing = actions.add_parser("import", help="read terms: one a line, or CSV")
        importing.add_argument("file", metavar="FILE", help="UTF-8; - is standard input")
        importing.add_argument(
            "--replace", action="store_true", help="delete the terms that the list does not have"
        )
        listing = actions.add_parser("list", help="show the terms, one a line")
        exporting = actions.add_parser("export", help="write the terms as CSV")
        for action in (importing, listing, exporting):
            action.add_argument(
                "--recording", metavar="ID", help="the terms of one recording alone"
            )
        text = actions.add_parser(
            "text", help="write what was said in all recordings, for a language model"
        )
        text.add_argument("--language", default="", help="only what was said in this language")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "text":
            for line in glossary.written_lines(options["language"]):
                self.stdout.write(line)
            return
        recording = _recording(options["recording"]) if options["recording"] else None
        match options["action"]:
            case "import":
                self._import(recording, options["file"], replaces_all=options["replace"])
            case "list":
                for term in glossary.terms_of(recording):
                    self.stdout.write(glossary.line_of(term))
            case "export":
                for line in glossary.table_of(glossary.terms_of(recording)):
                    self.stdout.write(line)

    def _import(self, recording: Recording | None, file: str, *, replaces_all: bool) -> None:
        try:
            text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError:
            raise CommandError(f"{file} is no text. Save it as UTF-8.") from None
        try:
            terms = glossary.read_terms(text.splitlines())
            if not terms:  # with --replace it would delete all: rather a file that was not written
                raise CommandError(f"Nothing was changed. {glossary.EMPTY_LIST}")
            written = glossary.write_terms(
                recording=recording,
                terms=terms,
                written_by=None,
                replaces_all=replaces_all,
            )
        except ProductError as error:
            raise CommandError(error.text) from error
        self.stdout.write(
            f"{written.added} added, {written.changed} changed, {written.removed} deleted"
        )


def _recording(recording_id: str) -> Recording:
    try:
        return Recording.objects.get(id=recording_id)
    except (Recording.DoesNotExist, ValidationError):
        raise CommandError(f"There is no recording {recording_id}.") from None
