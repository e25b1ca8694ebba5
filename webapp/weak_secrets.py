"""Secrets that are none: empty, short, or copied from an example.

Nothing here has a default; what this finds was typed. The web process does not start with a weak
signing key, and `manage.py check` says the same of all of them.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote, urlsplit

from webapp.config import Settings

SHORTEST_KEY: Final = 32
SHORTEST_PASSWORD: Final = 12
FEWEST_SIGNS: Final = 8
"""Different ones: `aaaa…` is long too."""
LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_EXAMPLE: Final = re.compile(
    r"change.?me|replace.?me|insecure|example|placeholder|password|secret|your.?key|12345678",
    re.IGNORECASE,
)


def weak_key(settings: Settings) -> str:
    """What is wrong with the signing key, in a sentence; empty when nothing is."""
    key = settings.secret_key.get_secret_value()
    if _is_weak(key, shortest=SHORTEST_KEY):
        return f"TRANSCRIBE_SECRET_KEY is no secret: give {SHORTEST_KEY} random characters or more."
    return ""


def weak_passwords(settings: Settings) -> list[str]:
    """A sentence for each server on the network whose password is missing or weak."""
    urls = {
        "TRANSCRIBE_BROKER_URL": settings.broker_url,
        "TRANSCRIBE_AUDIO_URL": settings.audio_url,
        "TRANSCRIBE_DATABASE_URL": settings.database_url,
    }
    found = []
    for name, url in urls.items():
        parts = urlsplit(url)
        if not parts.hostname or parts.hostname in LOOPBACK:
            continue
        if _is_weak(unquote(parts.password or ""), shortest=SHORTEST_PASSWORD):
            found.append(
                f"{name} names a server on the network with no password, or one that is easily "
                f"guessed: give {SHORTEST_PASSWORD} random characters or more."
            )
    return found


def _is_weak(secret: str, *, shortest: int) -> bool:
    return (
        len(secret) < shortest
        or len(set(secret)) < FEWEST_SIGNS
        or _EXAMPLE.search(secret) is not None
    )
