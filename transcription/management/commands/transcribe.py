"""`manage.py transcribe FILE…`: the batch road in the foreground, without server or database; with
`--url` on another server, through its public REST API alone.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from asr_engine import registry
from asr_engine.batch import two_pass
from asr_engine.batch.channels import survey
from asr_engine.batch.probe import probe_safely
from asr_engine.batch.two_pass import Pass, TwoPassOptions
from asr_engine.config import engine_settings
from asr_engine.errors import EngineError, ModelError, UnsupportedLanguageError
from asr_engine.ports import BatchModel, SpeechFinder
from asr_engine.results import Segment
from asr_engine.scripts import written
from asr_engine.tracks import plan_of
from transcription.errors import InvalidInputError
from transcription.formats import FORMATS, export
from transcription.languages import MIXED
from transcription.runners.remote_transcription import RemoteError, RemoteServer
from transcription.runners.rescoring import rescorer_of

BAR_WIDTH: Final = 30


class Command(BaseCommand):
    help = "Transcribe recordings and print the transcripts, or write them to a folder."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument(
            "--language",
            help=f"two-letter code, or {MIXED} where several mix; by default it is detected",
        )
        parser.add_argument(
            "--draft-only",
            action="store_true",
            help="stop after the draft pass: sooner, not as good",
        )
        parser.add_argument(
            "--glossary", type=Path, metavar="LIST", help="names and terms to expect, one a line"
        )
        parser.add_argument(
            "--url", metavar="URL", help="let the server at https://HOST:PORT transcribe"
        )
        parser.add_argument(
            "--token",
            help="for that server, with the scopes recordings:read and recordings:write; "
            "`-` reads it from standard input",
        )
        parser.add_argument("--format", choices=list(FORMATS), default="txt")
        parser.add_argument("--output-dir", type=Path, help="write one file per recording here")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["url"]:
            transcribe_one = self._remotely(options)
        elif options["token"]:
            raise CommandError("--token goes with --url.")
        else:
            transcribe_one = self._here(options)
        files: list[Path] = options["files"]
        folder: Path | None = options["output_dir"]
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
        failed = 0
        for path in files:
            try:
                text = transcribe_one(path)
            except (EngineError, RemoteError, OSError) as error:
                failed += 1
                self._hide()
                self.stderr.write(self.style.ERROR(f"{path}: {_sentence_of(error)}"))
                continue
            if folder is None:
                self.stdout.write(text)
                continue
            target = folder / f"{_output_name(path, files)}.{options['format']}"
            target.write_text(text, encoding="utf-8")
            self.stderr.write(f"{path}: {target}")
        if failed:
            raise CommandError(f"{failed} of {len(files)} recordings could not be transcribed.")

    def _remotely(self, options: dict[str, Any]) -> Callable[[Path], str]:
        """What transcribes a recording on the server at `--url`."""
        if options["glossary"]:
            raise CommandError("The server has a glossary of its own: leave out --glossary.")
        token = options["token"] or ""
        if token == "-":  # noqa: S105  # no secret: where to find it
            token = sys.stdin.readline().strip()
        if not token:
            raise CommandError("The server wants a token: give --token.")

        def transcribe_there(path: Path) -> str:
            def show(stage: str, share: float) -> None:
                self._show(f"{stage} {path.name}", share)

            with RemoteServer(options["url"], token, progress=show) as server:
                text = server.transcribe(
                    path,
                    extension=options["format"],
                    language=options["language"] or "",
                    is_draft_only=options["draft_only"],
                )
            self._hide()
            return text

        return transcribe_there

    def _here(self, options: dict[str, Any]) -> Callable[[Path], str]:
        """What transcribes a recording with the models of this machine."""
        try:
            model = registry.batch_model(engine_settings())
            finder = registry.speech_finder(engine_settings())
            rescorer = rescorer_of(engine_settings(), options["glossary"])
        except ModelError as error:
            raise CommandError(f"{error.sentence} {error.detail}".strip()) from error
        except (OSError, UnicodeDecodeError, InvalidInputError) as error:
            raise CommandError(f"The glossary cannot be read: {error}") from error
        language: str | None = options["language"]
        if language and language not in {*model.languages, MIXED}:
            raise CommandError(f"{UnsupportedLanguageError.sentence} ({language})")
        asked = TwoPassOptions(
            language=None if language == MIXED else language,
            mixes_languages=language == MIXED,
            is_draft_only=options["draft_only"],
            rescorer=rescorer,
        )

        def transcribe_here(path: Path) -> str:
            segments, spoken, duration_ms = self._transcribe(path, model, finder, asked)
            return export(
                options["format"], path.name, segments, language=spoken, duration_ms=duration_ms
            )

        return transcribe_here

    def _transcribe(
        self, path: Path, model: BatchModel, finder: SpeechFinder, asked: TwoPassOptions
    ) -> tuple[list[Segment], str, int]:
        """Segments, the language spoken ("" where nobody spoke), and the duration in ms."""
        limit_s = settings.SITE.max_recording_hours * 3600
        duration_ms = probe_safely(path, max_duration_s=limit_s).duration_ms
        begun = time.monotonic()
        segments: list[Segment] = []
        spoken = ""
        self._show(path.name, 0.0)
        options = replace(asked, plan=plan_of(survey(path, finder=finder)))
        last_pass = Pass.DRAFT if options.is_draft_only else Pass.REFINED
        for group in two_pass.transcribe(path, model=model, finder=finder, options=options):
            if group.pass_ is last_pass:
                segments += group.segments
            spoken = group.language.language if group.language else spoken
            # Of the track that is heard; the probe looked at the default one.
            duration_ms = group.audio_total_ms
            self._show(path.name, group.audio_done_ms / duration_ms)
        self._hide()
        took_s = time.monotonic() - begun
        heard = f"{len(segments)} segments" if segments else "nobody speaks"
        self.stderr.write(f"{path}: {heard}, {duration_ms / 1000:.0f} s of audio in {took_s:.1f} s")
        return written(segments, settings.SITE.chinese_script), spoken, duration_ms

    def _show(self, name: str, share: float) -> None:
        if self.stderr.isatty():
            filled = round(min(1.0, share) * BAR_WIDTH)
            bar = "█" * filled + "░" * (BAR_WIDTH - filled)
            self.stderr.write(f"\r{bar} {min(1.0, share):4.0%} {name}\x1b[K", ending="")
            self.stderr.flush()

    def _hide(self) -> None:
        if self.stderr.isatty():
            self.stderr.write("\r\x1b[2K", ending="")


def _sentence_of(error: EngineError | RemoteError | OSError) -> str:
    if isinstance(error, EngineError):
        return error.sentence
    return f"{error.strerror}." if isinstance(error, OSError) else str(error)


def _output_name(path: Path, files: Sequence[Path]) -> str:
    """The name without its extension, unless another file would get the same."""
    is_alone = sum(other.stem == path.stem for other in files) == 1
    return path.stem if is_alone else path.name
