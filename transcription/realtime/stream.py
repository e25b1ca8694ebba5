"""The socket of tools: `/ws/v1/stream`, with a token in `hello` and a session made for it."""

from __future__ import annotations

from uuid import UUID

from channels.db import database_sync_to_async
from django.utils import timezone

from transcription import selectors
from transcription.errors import NotFoundError
from transcription.models import LiveSession, Visibility
from transcription.realtime import wire
from transcription.realtime.capture import CapturingSocket
from transcription.services import live_sessions
from transcription.services.token_access import open_token
from webapp.accounts.models import Scope, User


class StreamSocket(CapturingSocket):
    """Only the token's owner reads the session, unless it is shared from its page."""

    def __init__(self) -> None:
        super().__init__()
        self._token = ""
        self._is_session_ours = False

    async def on_connect(self) -> None:
        self.expect_introduction()
        await super().on_connect()

    async def identify(self, hello: wire.Hello) -> LiveSession:
        self._token = hello.token
        session: LiveSession = await database_sync_to_async(self._open)(hello)
        self.session_id = str(session.id)
        self.introduced()
        await self.follow_rights(session.owner)
        return session

    def _open(self, hello: wire.Hello) -> LiveSession:
        owner = self._token_owner()
        if hello.sessions:
            try:
                return selectors.access_own_live_session_by_id(owner, UUID(hello.sessions[0]))
            except ValueError:
                raise NotFoundError from None
        self._is_session_ours = True
        return live_sessions.create_live_session(
            owner=owner,
            title=_title_of(hello),
            reference=hello.reference,
            language=hello.language,
            mode_ms=hello.mode_ms,
            visibility=Visibility.PRIVATE,
        )

    async def on_close(self) -> None:
        """A session that was made for this socket and taken by no engine leaves nothing behind."""
        await super().on_close()
        if self._is_session_ours and self.session_id:
            await database_sync_to_async(live_sessions.delete_unstarted_session)(
                session_id=self.session_id
            )

    def fetch_session(self) -> LiveSession:
        return selectors.access_own_live_session_by_id(self._token_owner(), self.session_id)

    def _token_owner(self) -> User:
        """Raises NotAuthenticatedError, MissingScopeError."""
        return open_token(self._token, Scope.LIVE_WRITE).user


def _title_of(hello: wire.Hello) -> str:
    """With who speaks, where that is known; empty for the usual title."""
    if not hello.speakers:
        return hello.title
    call = hello.title or f"Call, {timezone.localtime():%d %b %Y %H:%M}"
    return f"{call} · {hello.speakers[0]}"
