"""`manage.py caption`: a recording, or raw PCM from standard input, as a live microphone.

With `--url` it speaks the public socket and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import BaseCommand, CommandError

from asr_engine.errors import AudioError
from transcription.errors import NotFoundError
from transcription.runners.caption import (
    STREAM_PATH,
    CaptionError,
    CaptionStream,
    PcmSource,
    decode_to,
    stream_address,
)
from transcription.runners.caption_load import LoadPlan, LoadResult, run_load
from transcription.runners.caption_report import StreamReport, summarise
from webapp.config import site_settings

if TYPE_CHECKING:
    from transcription.runners.caption_here import OwnServer

SPREAD_PER_CLIENT_S: Final = 0.05
"""Between the starts of two clients: people do not press the button in the same moment."""
MAX_CLIENTS: Final = 1000
MAX_VIEWERS: Final = 5000
MAX_SPEED: Final = 8.0
"""The server takes audio no faster (`realtime.allowance`)."""


@dataclass(frozen=True, slots=True)
class _Access:
    """How the run gets in: a token to speak, and what this machine's own server lends it."""

    token: str
    own: OwnServer | None = None


class Command(BaseCommand):
    help = (
        "Stream a recording to a running server in real time, show the captions, and report how "
        "late they were. `-` reads 16 kHz mono PCM16 from standard input. With --clients and "
        "--viewers it is a load generator: so many microphones at once, so many readers of the "
        "first one's captions."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file")
        parser.add_argument("--url", help="server, as wss://HOST:PORT; default: this one")
        parser.add_argument("--token", help="default: one of the administrator, for this run only")
        parser.add_argument("--language", default="", help="default: detected")
        parser.add_argument("--latency", type=int, default=0, metavar="MS")
        parser.add_argument("--packet", type=int, default=0, metavar="MS")
        parser.add_argument("--clients", type=_bounded(1, MAX_CLIENTS), default=1, metavar="N")
        parser.add_argument("--viewers", type=_bounded(0, MAX_VIEWERS), default=0, metavar="M")
        parser.add_argument(
            "--spread",
            type=float,
            default=SPREAD_PER_CLIENT_S,
            metavar="S",
            help="seconds between the starts of two clients",
        )
        parser.add_argument(
            "--expect",
            type=Path,
            metavar="TEXT",
            help="a file with what every stream should say: counts the words lost and doubled",
        )
        parser.add_argument(
            "--speed",
            type=float,
            default=1.0,
            metavar="X",
            help=f"times real time, up to {MAX_SPEED:g}: the session is made as if it had begun "
            "so long ago that its audio is all in the past",
        )
        parser.add_argument("--report", choices=["json"])

    def handle(self, *args: Any, **options: Any) -> None:
        if not 1 <= options["speed"] <= MAX_SPEED:
            raise CommandError(f"--speed must be from 1 to {MAX_SPEED:g}.")
        if options["url"]:
            try:
                options["url"] = stream_address(options["url"])
            except CaptionError as error:
                raise CommandError(str(error)) from error
        is_load = options["clients"] > 1 or options["viewers"] or options["speed"] > 1
        try:
            with _access(options) as access:
                if is_load:
                    summary, reports = self._run_load(access, options)
                else:
                    summary, reports = self._run_one(access, options)
        except AudioError as error:
            raise CommandError(error.sentence) from error
        except KeyboardInterrupt:
            raise CommandError("Stopped.") from None
        if options["report"] == "json":
            self.stdout.write(json.dumps(summary, indent=2))
        else:
            self._show_summary(summary)
        problems = [report.problem for report in reports if report.problem]
        if problems:
            raise CommandError(f"{len(problems)} of {len(reports)} streams: {problems[0]}")

    def _run_one(
        self, access: _Access, options: dict[str, Any]
    ) -> tuple[dict[str, Any], list[StreamReport]]:
        stream = CaptionStream(
            options["url"] or _own_url(STREAM_PATH),
            access.token,
            language=options["language"],
            mode_ms=options["latency"],
            packet_ms=options["packet"],
            on_event=self._show if options["report"] is None else None,
        )
        with _source(options["file"]) as source, contextlib.suppress(CaptionError):
            asyncio.run(stream.run(source))
        return summarise([stream.report], expected=_expected(options)), [stream.report]

    def _run_load(
        self, access: _Access, options: dict[str, Any]
    ) -> tuple[dict[str, Any], list[StreamReport]]:
        if options["file"] == "-":
            raise CommandError("Standard input can feed one client only.")
        with tempfile.NamedTemporaryFile(suffix=".pcm") as pcm:
            decode_to(_existing(options["file"]), pcm)
            pcm.flush()
            plan = LoadPlan(
                url=options["url"] or _own_url(STREAM_PATH),
                token=access.token,
                pcm=Path(pcm.name),
                language=options["language"],
                mode_ms=options["latency"],
                packet_ms=options["packet"],
                clients=options["clients"],
                spread_s=options["spread"],
                speed=options["speed"],
                viewers=options["viewers"],
                cookie="" if access.own is None else access.own.cookie,
                **_prepared(access, options),
            )
            result = run_load(plan)
        summary = summarise(result.streams, result.viewers, expected=_expected(options))
        summary["generator"] = _generator(result)
        if access.own is not None and options["expect"] is not None:
            sessions = [report.session for report in result.streams if report.session]
            summary["stored"] = access.own.compare_stored(sessions, _expected(options))
        return summary, result.streams

    def _show(self, event: dict[str, Any]) -> None:
        is_terminal = self.stdout.isatty()
        erase = "\r\x1b[K" if is_terminal else ""
        match event["type"]:
            case "partial" if is_terminal:
                self.stdout.write(f"{erase}… {event['text'][-110:]}", ending="")
                self.stdout.flush()
            case "final":
                self.stdout.write(f"{erase}[{_clock(event['start_ms'])}] {event['text']}")
            case "refined":
                self.stdout.write(f"{erase}[{_clock(event['start_ms'])}] refined: {event['text']}")
            case "gap":
                self.stdout.write(f"{erase}[{_clock(event['start_ms'])}] (missing audio)")
            case "state" if event.get("reason"):
                self.stdout.write(f"{erase}{event['reason']}")

    def _show_summary(self, summary: dict[str, Any]) -> None:
        first, final, lag, added = (
            summary[name]
            for name in ("time_to_first_partial_s", "time_to_final_s", "lag_s", "added_delay_s")
        )
        self.stdout.write(
            f"\n{summary['streams']} streams, {summary['audio_s']} s of audio, "
            f"{summary['finals']} finals, {summary['refined']} of them refined\n"
            f"time to first partial  p50 {first['p50']} s, p95 {first['p95']} s\n"
            f"time to final          p50 {final['p50']} s, p95 {final['p95']} s\n"
            f"lag                    p50 {lag['p50']} s, p95 {lag['p95']} s, "
            f"drift {summary['drift_s']} s\n"
            f"added delay            p50 {added['p50']} s, p95 {added['p95']} s, "
            f"drift {added['drift_s']} s\n"
            f"lost events {summary['lost_events']}, unacknowledged "
            f"{summary['unacknowledged_ms']} ms, reconnections {summary['reconnections']}"
        )
        if readers := summary.get("viewers"):
            added = readers["added_delay_s"]
            self.stdout.write(
                f"{readers['viewers']} viewers            p50 {added['p50']} s, p95 "
                f"{added['p95']} s, lost {readers['lost_events']}, refused {readers['refusals']}"
            )
        for code, count in summary["refusals"].items():
            self.stdout.write(f"refused: {count} ({code})")


def _bounded(least: int, most: int) -> Any:
    def whole_number(value: str) -> int:
        if not least <= int(value) <= most:
            raise ValueError
        return int(value)

    return whole_number


def _clock(position_ms: int) -> str:
    minutes, seconds = divmod(position_ms // 1000, 60)
    return f"{minutes}:{seconds:02}"


def _own_url(path: str) -> str:
    site = site_settings()
    host = "127.0.0.1" if site.host in {"0.0.0.0", "::"} else site.host  # noqa: S104 - compared
    return f"{'wss' if site.is_https else 'ws'}://{host}:{site.port}{path}"


def _existing(name: str) -> Path:
    path = Path(name)
    if not path.is_file():
        raise CommandError(f"There is no file {name}.")
    return path


@contextlib.contextmanager
def _source(name: str) -> Iterator[PcmSource]:
    if name == "-":
        yield PcmSource(sys.stdin.buffer, is_live=True)
        return
    with tempfile.TemporaryFile() as file:
        decode_to(_existing(name), file)
        yield PcmSource(file, is_live=False)


def _expected(options: dict[str, Any]) -> str:
    path: Path | None = options["expect"]
    return "" if path is None else " ".join(path.read_text().split())


def _generator(result: LoadResult) -> dict[str, Any]:
    """What the load itself cost; on the server's own machine it is part of the result."""
    return {
        "processes": result.processes,
        "cpu_s": result.cpu_s,
        "cores": round(result.cpu_s / result.wall_s, 3),
        "wall_s": result.wall_s,
    }


def _prepared(access: _Access, options: dict[str, Any]) -> dict[str, Any]:
    """Sessions that must exist before the run: readers must know the first one's address, and one
    that is spoken faster than real time must have begun long enough ago."""
    is_fast = options["speed"] > 1
    if not options["viewers"] and not is_fast:
        return {}
    if access.own is None:
        raise CommandError("--viewers and --speed need this server's database: leave out --url.")
    sessions = access.own.make_sessions(
        options["clients"] if is_fast else 1,
        language=options["language"],
        mode_ms=options["latency"],
        has_begun=is_fast,
    )
    captions_url = _own_url(f"/ws/v1/live/{sessions[0]}/captions")
    return {"sessions": tuple(sessions), "captions_url": captions_url}


@contextlib.contextmanager
def _access(options: dict[str, Any]) -> Iterator[_Access]:
    """The token given, or one of an administrator of this server that ends with the run."""
    if options["token"] or options["url"]:
        yield _Access(options["token"] or "")
        return
    # On use: another server is reached by its public socket alone.
    from transcription.runners.caption_here import enter_own_server

    try:
        with enter_own_server() as own:
            yield _Access(own.token, own)
    except NotFoundError as error:
        raise CommandError(error.text) from error
