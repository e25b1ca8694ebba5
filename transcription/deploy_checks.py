"""What `manage.py check --deploy` adds to Django's own: whether this installation is safe to open.

Unlike the checks of every start these ask the servers. A server that does not answer is not their
subject (`/readyz` tells): they then say nothing of it.
Ids: `transcription.E010` media among static files, `E011` media cannot be written, `E012` a weak
secret, `E013` a server open to the network, `E014` and `W014` a clock, `W015` disk space, `W016`
settings that others may read, `W017` everybody's browser in plain http.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import redis
from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004
from django.db import DatabaseError, connection
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from webapp.config import site_settings
from webapp.lan import machine_names
from webapp.weak_secrets import LOOPBACK, weak_passwords

TIMEOUT_S: Final = 2.0
CLOCK_WARNS_S: Final = 2.0
CLOCK_FAILS_S: Final = 30.0
"""Log-in codes, leases and signed links no longer agree between machines that differ by so much."""
LEAST_FREE_BYTES: Final = 5 * 1024**3


@register(Tags.security, deploy=True)
def check_media(*, app_configs: Sequence[AppConfig] | None, **_: Any) -> Iterator[CheckMessage]:
    """Recordings go out through their rights alone, so no web server may hand out their folder."""
    media = Path(settings.MEDIA_ROOT).resolve()
    for name in (settings.STATIC_ROOT, *settings.STATICFILES_DIRS):
        static = Path(name).resolve()
        if media.is_relative_to(static) or static.is_relative_to(media):
            yield Error(
                f"Recordings ({media}) and static files ({static}) lie in one another.",
                hint="Name another data directory: TRANSCRIBE_DATA_DIR.",
                id="transcription.E010",
            )
    present = next(folder for folder in (media, *media.parents) if folder.exists())
    if not os.access(present, os.W_OK | os.X_OK):
        yield Error(
            f"Recordings cannot be written to {media}.",
            hint="Make the folder writable for the user who runs the server.",
            id="transcription.E011",
        )


@register(Tags.security, deploy=True)
def check_passwords(*, app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    return [
        Error(sentence, hint="`openssl rand -base64 24` makes one.", id="transcription.E012")
        for sentence in weak_passwords(site_settings())
    ]


@register(Tags.security, deploy=True)
def check_servers_are_closed(
    *, app_configs: Sequence[AppConfig] | None, **_: Any
) -> Iterator[CheckMessage]:
    """Whoever reaches the broker or the audio server hears every meeting."""
    site = site_settings()
    for name, url in (("broker", site.broker_url), ("audio server", site.audio_url)):
        open_at = next(filter(_lets_anybody_in, _places(url)), None)
        if open_at is not None:
            yield Error(
                f"The {name} lets anybody in at {open_at[0]}:{open_at[1]}, without a password.",
                hint="Give it a password (requirepass), and let it listen on loopback or on a "
                "network of its own.",
                id="transcription.E013",
            )


@register(Tags.security, deploy=True)
def check_clocks(*, app_configs: Sequence[AppConfig] | None, **_: Any) -> Iterator[CheckMessage]:
    """This machine's against those of the broker and of the database."""
    for name, read in CLOCKS.items():
        try:
            theirs = read()
        except (RedisError, DatabaseError):
            continue
        apart_s = 0.0 if theirs is None else abs(theirs - time.time())
        if apart_s > CLOCK_WARNS_S:
            fails = apart_s > CLOCK_FAILS_S
            yield (Error if fails else Warning)(
                f"The clocks of this machine and of the {name} are {apart_s:.0f} s apart.",
                hint="Let both follow one time server (NTP).",
                id="transcription.E014" if fails else "transcription.W014",
            )


@register(Tags.security, deploy=True)
def check_disk(*, app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Room for the largest upload at least, since it is kept beside what is made of it."""
    site = site_settings()
    wanted = max(LEAST_FREE_BYTES, site.max_upload_bytes)
    try:
        free = shutil.disk_usage(site.data_dir).free
    except OSError:  # `check_data_dir` says so
        return []
    if free >= wanted:
        return []
    return [
        Warning(
            f"{free / 1024**3:.1f} GB are free for {site.data_dir}, less than the "
            f"{wanted / 1024**3:.3g} GB that one upload may need.",
            hint="Make room, or lower TRANSCRIBE_MAX_UPLOAD_BYTES.",
            id="transcription.W015",
        )
    ]


@register(Tags.security, deploy=True)
def check_files_are_private(
    *, app_configs: Sequence[AppConfig] | None, **_: Any
) -> list[CheckMessage]:
    """The settings file holds the secrets, the data directory everything that was said."""
    directory = site_settings().data_dir
    return [
        Warning(
            f"Other users of this machine may read {path}.",
            hint=f"Run `chmod {wanted} {path}`.",
            id="transcription.W016",
        )
        for path, wanted in ((directory, "700"), (directory / "settings.env", "600"))
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077
    ]


@register(Tags.security, deploy=True)
def check_https(*, app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """On the network plain http gives away the words, and browsers give it no microphone."""
    site = site_settings()
    if site.is_https or site.host in LOOPBACK:
        return []
    return [
        Warning(
            f"The site is served in plain http on {site.host}.",
            hint="Serve https: docs/operations.md, “Network and certificates”.",
            id="transcription.W017",
        )
    ]


def _places(url: str) -> Iterator[tuple[str, int]]:
    """Where the network could reach the server of `url`: there, or where this machine is known."""
    parts = urlsplit(url)
    if not parts.hostname:  # a socket in the file system
        return
    port = parts.port or 6379
    if parts.hostname not in LOOPBACK:
        yield parts.hostname, port
        return
    for name in machine_names():
        try:
            is_on_network = not ipaddress.ip_address(name).is_loopback
        except ValueError:
            continue
        if is_on_network:
            yield name, port


def _lets_anybody_in(place: tuple[str, int]) -> bool:
    host, port = place
    with _connect(redis.Redis, host=host, port=port) as server:
        try:
            return bool(server.ping())
        except RedisError:
            return False


def _broker_time() -> float:
    with _connect(redis.Redis.from_url, url=site_settings().broker_url) as broker:
        seconds, microseconds = broker.time()
    return float(seconds) + float(microseconds) / 1e6


def _database_time() -> float | None:
    """None where the database is a file of this machine."""
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())")
        return float(cursor.fetchone()[0])


CLOCKS: Final[dict[str, Callable[[], float | None]]] = {
    "broker": _broker_time,
    "database": _database_time,
}


def _connect(make: Callable[..., redis.Redis], **place: Any) -> redis.Redis:
    """Gives up soon, and after one try."""
    return make(
        socket_timeout=TIMEOUT_S,
        socket_connect_timeout=TIMEOUT_S,
        retry=Retry(NoBackoff(), 0),
        **place,
    )
