"""`manage.py audiosocket`: calls of an Asterisk exchange as live sessions."""

from __future__ import annotations

import asyncio
import signal
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from transcription.runners.audiosocket import AudioSocketBridge, BridgeOptions
from transcription.runners.caption import STREAM_PATH, CaptionError, stream_address
from webapp.config import site_settings

DEFAULT_PORT: Final = 9092


class Command(BaseCommand):
    help = (
        "Listen for AudioSocket connections of an Asterisk exchange, and caption each call as a "
        "live session, until SIGTERM. AudioSocket has no log-in: listen where the exchange alone "
        "can connect."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--listen", default=f"127.0.0.1:{DEFAULT_PORT}", metavar="HOST:PORT")
        parser.add_argument("--url", help="server, as wss://HOST:PORT; default: this one")
        parser.add_argument(
            "--token-file",
            type=Path,
            required=True,
            metavar="FILE",
            help="a file with a token that may live:write, best of a service account",
        )
        parser.add_argument("--language", default="", help="default: detected")
        parser.add_argument("--latency", type=int, default=0, metavar="MS")
        parser.add_argument("--calls", type=int, default=200, metavar="N", help="at once, at most")

    def handle(self, *args: Any, **options: Any) -> None:
        host, _, port = options["listen"].rpartition(":")
        if not port.isdigit():
            raise CommandError("--listen must be like 127.0.0.1:9092.")
        try:
            token = options["token_file"].read_text().strip()
            url = stream_address(options["url"] or _own_address())
        except OSError as error:
            raise CommandError(f"{options['token_file']} cannot be read.") from error
        except CaptionError as error:
            raise CommandError(str(error)) from error
        bridge = AudioSocketBridge(
            BridgeOptions(
                url=url,
                token=token,
                language=options["language"],
                mode_ms=options["latency"],
                most_calls=options["calls"],
            )
        )
        try:
            asyncio.run(_serve(bridge, host.strip("[]") or "127.0.0.1", int(port)))
        except OSError as error:
            raise CommandError(f"{options['listen']} cannot be listened on.") from error


async def _serve(bridge: AudioSocketBridge, host: str, port: int) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    await bridge.serve(host, port, stopping)


def _own_address() -> str:
    site = site_settings()
    host = "127.0.0.1" if site.host in {"0.0.0.0", "::"} else site.host  # noqa: S104 - compared
    return f"{'wss' if site.is_https else 'ws'}://{host}:{site.port}{STREAM_PATH}"
