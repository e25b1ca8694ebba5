"""Who stands behind a page's socket, by the session cookie that it was opened with."""

from __future__ import annotations

from typing import Any

from transcription.services.session_access import user_of_session
from webapp.accounts.models import User


def user_of_cookie(scope: dict[str, Any]) -> User:
    """The person as the database has it now: a log-out or a new password ends the session.

    Synchronous: database. Raises NotAuthenticatedError.
    """
    return user_of_session(scope["session"].session_key)
