"""`manage.py evaluate MANIFEST`: WER or CER, RTFx, latency, DER over recordings with references."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from asr_engine.batch.two_pass import Pass
from asr_engine.config import engine_settings
from asr_engine.errors import EngineError, ModelError, UnsupportedModeError
from asr_engine.evaluation import FileScore
from asr_engine.registry import speaker_diariser
from transcription.errors import InvalidInputError
from transcription.runners.evaluate import Road, Selection, evaluate
from transcription.runners.evaluate_speakers import (
    SpeakerScore,
    evaluate_speakers,
    speaker_entries,
)
from transcription.runners.rescoring import rescorer_of


class Command(BaseCommand):
    help = (
        "Score the batch or live transcripts of a manifest's recordings, or who speaks in them, "
        "against its references."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("manifest", type=Path, help="JSON lines: file, text, lang, seconds")
        road = parser.add_mutually_exclusive_group()
        road.add_argument("--batch", action="store_const", const=Road.BATCH, dest="road")
        road.add_argument("--live", action="store_const", const=Road.LIVE, dest="road")
        road.add_argument(
            "--speakers", action="store_true", help="score who spoke when, by the entries' `rttm`"
        )
        parser.add_argument(
            "--latency", type=int, default=0, metavar="MS", help="latency mode of the live road"
        )
        parser.add_argument(
            "--pass",
            choices=[one.value for one in Pass],
            default=Pass.REFINED.value,
            help="score the text of this pass of the batch road; nothing after it is done",
        )
        parser.add_argument(
            "--glossary", type=Path, metavar="LIST", help="names and terms to expect, one a line"
        )
        parser.add_argument("--folder", default="", help="only files directly in this folder")
        parser.add_argument("--lang", default="", help="only this language")
        parser.add_argument("--quality", default="AB", help="only references of these qualities")
        parser.add_argument("--limit", type=int, default=0, help="at most this many files")
        parser.add_argument("--report", choices=["json"], help="print the whole report as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["speakers"]:
            self._evaluate_speakers(options)
        else:
            self._evaluate_text(options)

    def _evaluate_speakers(self, options: dict[str, Any]) -> None:
        try:
            entries = speaker_entries(
                options["manifest"], folder=options["folder"].strip("/"), limit=options["limit"]
            )
        except (OSError, ValueError) as error:
            raise CommandError(f"The manifest cannot be read: {error}") from error
        if not entries:
            raise CommandError("No entry of the manifest says who speaks when.")

        def line(name: str, speakers: str, counted: float | None, given: float | None) -> None:
            rates = [f"{rate:7.1%}" if rate is not None else "      -" for rate in (counted, given)]
            self.stdout.write(f"{name:<40} {speakers:>14} {rates[0]} {rates[1]} given")

        def show(score: SpeakerScore) -> None:
            if not options["report"]:
                speakers = f"{score.found} of {score.speakers}"
                line(score.file, speakers, score.counted.rate, score.given.rate)

        try:
            diariser = speaker_diariser(engine_settings())
            if diariser is None:
                raise CommandError("ASR_SPEAKER_BACKEND is `none`.")
            result = evaluate_speakers(entries, diariser=diariser, on_scored=show)
        except EngineError as error:
            raise CommandError(f"{error.sentence} {error.detail}".strip()) from error
        if options["report"]:
            self.stdout.write(json.dumps(result, ensure_ascii=False, indent=1))
            return
        line("all", "", result["counted"]["der"], result["given"]["der"])
        self.stdout.write(
            f"{result['diariser']}, collar {result['collar_ms']} ms, overlap counted; "
            f"{result['audio_s']:.0f} s of audio, RTF {result['rtf']}"
        )

    def _evaluate_text(self, options: dict[str, Any]) -> None:
        selection = Selection(
            folder=options["folder"].strip("/"),
            language=options["lang"],
            quality=options["quality"],
            limit=options["limit"],
        )
        try:
            entries = selection.entries(options["manifest"])
        except (OSError, ValueError) as error:
            raise CommandError(f"The manifest cannot be read: {error}") from error
        if not entries:
            raise CommandError("No entry of the manifest fits.")
        try:
            rescorer = rescorer_of(engine_settings(), options["glossary"])
        except (OSError, UnicodeDecodeError, InvalidInputError) as error:
            raise CommandError(f"The glossary cannot be read: {error}") from error
        done = 0

        def show(score: FileScore) -> None:
            nonlocal done
            done += 1
            rate = score.as_json()["rate"]
            shown = f"{rate:7.1%}" if rate is not None else f"{len(score.text.split()):>3} words"
            note = score.problem or f"{score.work_s:.1f} s"
            self.stderr.write(f"[{done}/{len(entries)}] {shown}  {score.entry.file}  {note}")

        try:
            result = evaluate(
                entries,
                road=options["road"] or Road.BATCH,
                settings=engine_settings(),
                mode_ms=options["latency"],
                last_pass=Pass(options["pass"]),
                rescorer=rescorer,
                on_scored=show,
            )
        except (ModelError, UnsupportedModeError) as error:
            raise CommandError(f"{error.sentence} {error.detail}".strip()) from error
        if options["report"]:
            self.stdout.write(json.dumps(result, ensure_ascii=False, indent=1))
        else:
            self._print(result)

    def _print(self, result: dict[str, Any]) -> None:
        def line(name: str, files: int, row: dict[str, Any]) -> None:
            rates = [
                f"{metric.upper()} {row[metric]:.2%}"
                for metric in ("wer", "cer")
                if row[metric] is not None
            ]
            self.stdout.write(f"{name:<24} {files:>4} files  {'  '.join(rates)}")

        for name, row in (result["by_folder"] | result["by_lang"]).items():
            line(name, row["files"], row)
        line("all", len(result["files"]), result)
        silent = result["no_speech"]
        if silent["files"]:
            self.stdout.write(
                f"nobody speaks in {silent['files']} files; text on {silent['files_with_text']}"
            )
        self.stdout.write(f"{result['audio_s']:.0f} s of audio, {result['rtfx']} x real time")
        for name, seconds in result.get("seconds_per_minute", {}).items():
            self.stdout.write(f"{name}: {seconds} s a minute of audio")
        for name in ("first_partial_ms", "final_ms", "finalisation_ms"):
            if name in result:
                delay = result[name]
                self.stdout.write(f"{name}: p50 {delay['p50']}, p95 {delay['p95']}")
