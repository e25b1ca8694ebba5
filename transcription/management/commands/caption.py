"""`manage.py caption`: a recording, or raw PCM from standard input, as a live microphone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from asr_engine.errors import AudioError
from transcription.runners.caption import (
    CaptionStream,
    PcmSource,
    open_source,
    run_streams,
    summarise,
)
from webapp.accounts.models import ApiToken, User
from webapp.config import site_settings

SPREAD_PER_CLIENT_S: Final = 0.05
"""Between the starts of two clients: people do not press the button in the same moment."""


class Command(BaseCommand):
    help = (
        "Stream a recording to a running server in real time, show the captions, and report how "
        "late they were. `-` reads 16 kHz mono PCM16 from standard input."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file")
        parser.add_argument("--url", help="address of the stream socket; default: this server's")
        parser.add_argument("--token", help="default: one of the administrator, for this run only")
        parser.add_argument("--language", default="", help="default: detected")
        parser.add_argument("--latency", type=int, default=0, metavar="MS")
        parser.add_argument("--packet", type=int, default=0, metavar="MS")
        parser.add_argument("--clients", type=int, default=1, metavar="N")
        parser.add_argument("--report", choices=["json"])

    def handle(self, *args: Any, **options: Any) -> None:
        is_shown = options["report"] is None and options["clients"] == 1
        try:
            with _source(options["file"], options["clients"]) as source, _token(options) as token:
                streams = [
                    CaptionStream(
                        options["url"] or _own_url(),
                        token,
                        language=options["language"],
                        mode_ms=options["latency"],
                        packet_ms=options["packet"],
                        on_event=self._show if is_shown else None,
                    )
                    for _ in range(options["clients"])
                ]
                asyncio.run(run_streams(streams, source, SPREAD_PER_CLIENT_S * options["clients"]))
        except AudioError as error:
            raise CommandError(error.sentence) from error
        except KeyboardInterrupt:
            raise CommandError("Stopped.") from None
        summary = summarise([stream.report for stream in streams])
        if options["report"] == "json":
            self.stdout.write(json.dumps(summary, indent=2))
        else:
            self._show_summary(summary)
        problems = [stream.report.problem for stream in streams if stream.report.problem]
        if problems:
            raise CommandError(f"{len(problems)} of {len(streams)} streams: {problems[0]}")

    def _show(self, event: dict[str, Any]) -> None:
        is_terminal = self.stdout.isatty()
        erase = "\r\x1b[K" if is_terminal else ""
        match event["type"]:
            case "partial" if is_terminal:
                self.stdout.write(f"{erase}… {event['text'][-110:]}", ending="")
                self.stdout.flush()
            case "final":
                self.stdout.write(f"{erase}[{_clock(event['start_ms'])}] {event['text']}")
            case "gap":
                self.stdout.write(f"{erase}[{_clock(event['start_ms'])}] (missing audio)")
            case "state" if event.get("reason"):
                self.stdout.write(f"{erase}{event['reason']}")

    def _show_summary(self, summary: dict[str, Any]) -> None:
        first, final, lag = (
            summary[name] for name in ("time_to_first_partial_s", "time_to_final_s", "lag_s")
        )
        self.stdout.write(
            f"\n{summary['streams']} streams, {summary['audio_s']} s of audio, "
            f"{summary['finals']} finals\n"
            f"time to first partial  p50 {first['p50']} s, p95 {first['p95']} s\n"
            f"time to final          p50 {final['p50']} s, p95 {final['p95']} s\n"
            f"lag                    p50 {lag['p50']} s, p95 {lag['p95']} s, "
            f"drift {summary['drift_s']} s\n"
            f"lost events {summary['lost_events']}, unacknowledged "
            f"{summary['unacknowledged_ms']} ms, reconnections {summary['reconnections']}"
        )


def _clock(position_ms: int) -> str:
    minutes, seconds = divmod(position_ms // 1000, 60)
    return f"{minutes}:{seconds:02}"


def _own_url() -> str:
    site = site_settings()
    host = "127.0.0.1" if site.host in {"0.0.0.0", "::"} else site.host  # noqa: S104 - compared
    return f"{'wss' if site.is_https else 'ws'}://{host}:{site.port}/ws/v1/stream"


@contextlib.contextmanager
def _source(name: str, clients: int) -> Iterator[PcmSource]:
    if name != "-":
        path = Path(name)
        if not path.is_file():
            raise CommandError(f"There is no file {name}.")
        with open_source(path) as source:
            yield source
    elif clients > 1:
        raise CommandError("Standard input can feed one client only.")
    else:
        yield PcmSource(sys.stdin.buffer, is_live=True)


@contextlib.contextmanager
def _token(options: dict[str, Any]) -> Iterator[str]:
    """The token given, or one of an administrator of this server that ends with the run."""
    if options["token"] or options["url"]:
        yield options["token"] or ""
        return
    owner = User.objects.filter(is_superuser=True, is_active=True).order_by("id").first()
    if owner is None:
        raise CommandError("This server has no administrator yet; give --token.")
    token, secret = ApiToken.issue(
        user=owner, name="manage.py caption", expires_at=timezone.now() + timedelta(days=1)
    )
    try:
        yield secret
    finally:
        token.delete()
