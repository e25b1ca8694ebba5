"""Who stands behind a page's socket, by the session cookie that it was opened with."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest

from transcription.errors import NotAuthenticatedError
from webapp.accounts.models import User


def user_of_cookie(scope: dict[str, Any]) -> User:
    """The person as the database has it now: a log-out or a new password ends the session.

    Synchronous: database. Raises NotAuthenticatedError.
    """
    request = HttpRequest()
    request.session = SessionStore(scope["session"].session_key)
    user = get_user(request)
    if not isinstance(user, User) or not user.is_active:
        raise NotAuthenticatedError
    return user
