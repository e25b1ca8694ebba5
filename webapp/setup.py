"""Prepares a data directory: what `make setup` runs, and `make run` before each start.

    python -m webapp.setup [--without-models]

Safe to run again: it makes only what is missing. Owns `settings.env` (secrets and the addresses of
the embedded servers); it runs before Django has settings, since it writes them.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import secrets
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from dotenv import dotenv_values

from webapp.config import data_dir, settings_file

FIRST_ADMINISTRATOR = "admin@localhost"

HEADER = """\
# Made by `python -m webapp.setup`; holds secrets, keep its mode 0600.
# Every setting is described in docs/settings.md. The environment wins over this file.
"""


class AlreadyRunningError(Exception):
    """Another process holds the data directory."""


@contextlib.contextmanager
def hold_data_dir(directory: Path) -> Iterator[None]:
    """Keep others from starting on `directory`. Raises AlreadyRunningError with a sentence."""
    with (directory / "server.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise AlreadyRunningError(
                f"A server is already running on {directory}: stop it first, or name another "
                "directory with DATA=."
            ) from None
        yield


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def is_port_free(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def embedded_url() -> str:
    """URL of an embedded server: loopback, a free port, a random password."""
    return f"redis://:{secrets.token_urlsafe(24)}@127.0.0.1:{free_port()}/0"


def move_when_taken(url: str) -> str:
    """The same URL, on another port when something else listens on its own."""
    parts = urlsplit(url)
    if parts.hostname != "127.0.0.1" or parts.port is None or is_port_free(parts.port):
        return url
    user_info = parts.netloc.rpartition("@")[0]
    return urlunsplit(parts._replace(netloc=f"{user_info}@127.0.0.1:{free_port()}"))


def write_settings(directory: Path) -> Path:
    """Make the data directory (0700) and `settings.env` (0600), or complete them.

    Ports of the embedded servers are chosen again when they are taken: call this only while no
    server runs on the directory. What the environment gives is not written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    path = settings_file(directory)
    values = {key: value or "" for key, value in dotenv_values(path).items()}
    before = dict(values)
    embedded = {**values, **os.environ}.get("TRANSCRIBE_EMBEDDED_SERVERS", "true").lower()
    if "TRANSCRIBE_SECRET_KEY" not in os.environ:
        values.setdefault("TRANSCRIBE_SECRET_KEY", secrets.token_urlsafe(50))
    for name in ("TRANSCRIBE_BROKER_URL", "TRANSCRIBE_AUDIO_URL"):
        if name not in os.environ:
            values.setdefault(name, embedded_url())
            if embedded != "false":
                values[name] = move_when_taken(values[name])
    if values == before:
        return path
    added = {key: value for key, value in values.items() if before.get(key) != value}
    kept = path.read_text() if path.exists() else HEADER
    lines = [line for line in kept.splitlines() if line.partition("=")[0].strip() not in added]
    lines += [f"{key}={value}" for key, value in added.items()]
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write("\n".join(lines) + "\n")
    path.chmod(0o600)
    return path


def make_first_administrator() -> str | None:
    """Make the first person where there is none; the password, which is stored nowhere else."""
    from webapp.accounts.models import User

    if User.objects.exists():
        return None
    password = secrets.token_urlsafe(12)
    User.objects.create_superuser(FIRST_ADMINISTRATOR, password, name="Administrator")
    return password


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m webapp.setup", description=__doc__)
    parser.add_argument(
        "--without-models", action="store_true", help="do not fetch the speech models"
    )
    arguments = parser.parse_args()

    directory = data_dir()
    directory.mkdir(parents=True, exist_ok=True)
    try:
        with hold_data_dir(directory):
            write_settings(directory)
            _prepare_site(has_models=not arguments.without_models)
    except AlreadyRunningError as problem:
        sys.exit(str(problem))


def _prepare_site(*, has_models: bool) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", interactive=False, verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    password = make_first_administrator()
    if password:
        print(  # noqa: T201  # shown once, to the person who sets the server up
            f"\nFirst administrator (shown only now; change it after logging in):\n"
            f"  e-mail    {FIRST_ADMINISTRATOR}\n  password  {password}\n",
            flush=True,
        )
    if has_models:
        call_command("models", "fetch")


if __name__ == "__main__":
    main()
