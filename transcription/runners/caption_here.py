"""What `manage.py caption` does on the server's own machine beside being a client: it lends itself
a token and a cookie, makes sessions beforehand, and looks at what was stored.

The only part of the command that knows the database; with `--url` it is not even imported.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone

from transcription.errors import NotFoundError
from transcription.models import LiveSession, LiveState, LiveUtterance, Visibility
from transcription.runners.caption_report import compare
from transcription.services import live_sessions
from webapp.accounts.models import ApiToken, User

FINISHING_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class OwnServer:
    """This server, entered as `owner`: a token to speak, a cookie to read."""

    owner: User
    token: str
    cookie: str

    def make_sessions(
        self, count: int, *, language: str, mode_ms: int, has_begun: bool
    ) -> list[str]:
        """Ids of sessions to be captured. Where each `has_begun`, it did so a day ago, so that its
        audio may come faster than it is spoken."""
        sessions = [
            live_sessions.create_live_session(
                owner=self.owner,
                title="Load",
                language=language,
                mode_ms=mode_ms,
                visibility=Visibility.PRIVATE,
            )
            for _ in range(count)
        ]
        if has_begun:
            LiveSession.objects.filter(id__in=[session.id for session in sessions]).update(
                started_at=timezone.now() - timedelta(days=1)
            )
        return [str(session.id) for session in sessions]

    def compare_stored(self, sessions: Sequence[str], expected: str) -> dict[str, int]:
        """What the server has of the sessions once they are finished: a stream that stopped is told
        after some seconds that the rest happens without it, and has not heard that rest."""
        deadline = time.monotonic() + FINISHING_S
        unfinished = LiveSession.objects.filter(id__in=sessions).exclude(state=LiveState.ENDED)
        while unfinished.exists() and time.monotonic() < deadline:
            time.sleep(0.5)
        texts = []
        for session in sessions:
            rows = LiveUtterance.objects.filter(session__id=session).order_by("utterance")
            texts.append(" ".join(rows.values_list("text", flat=True)))
        return compare(texts, expected) | {"unfinished": unfinished.count()}


@contextmanager
def enter_own_server() -> Iterator[OwnServer]:
    """As its first administrator, by a token and a log-in that end with the run.

    Raises NotFoundError where there is none yet.
    """
    owner = User.objects.filter(is_superuser=True, is_active=True).order_by("id").first()
    if owner is None:
        raise NotFoundError("This server has no administrator yet; give --token.")
    token, secret = ApiToken.issue(
        user=owner, name="manage.py caption", expires_at=timezone.now() + timedelta(days=1)
    )
    session = _log_in(owner)
    try:
        cookie = f"{settings.SESSION_COOKIE_NAME}={session.session_key}"
        yield OwnServer(owner, secret, cookie)
    finally:
        token.delete()
        session.delete()


def _log_in(person: User) -> SessionStore:
    """A session of `person`, as a log-in makes it."""
    session = SessionStore()
    session[SESSION_KEY] = str(person.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = person.get_session_auth_hash()
    session.save()
    return session
