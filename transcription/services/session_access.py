"""Who stands behind a browser's log-in, as the database has it now."""

from __future__ import annotations

from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest

from transcription.errors import NotAuthenticatedError
from webapp.accounts.models import User


def user_of_session(session_key: str | None) -> User:
    """Read anew: a log-out or a new password ends the session.

    Raises NotAuthenticatedError.
    """
    request = HttpRequest()
    request.session = SessionStore(session_key)
    user = get_user(request)
    if not isinstance(user, User) or not user.is_active:
        raise NotAuthenticatedError
    return user
