"""The socket of a recording's page: says that something changed, and the page fetches it.

No text and no figure travels here, so a message that is lost costs nothing that a later one does
not bring.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from channels.db import database_sync_to_async

from transcription import broadcast, selectors
from transcription.errors import NotAuthenticatedError
from transcription.realtime.border import ProductSocket
from transcription.realtime.cookies import user_of_cookie

CHANGED: Final[dict[str, Any]] = {"type": "changed"}
QUIET_S: Final = 1.0
"""At most one message in this time, however often the recording changes."""


class RecordingSocket(ProductSocket):
    """Rights are checked when the page connects, and again whenever they change."""

    def __init__(self) -> None:
        super().__init__()
        self._is_changed = False
        self._is_announcing = False

    async def on_connect(self) -> None:
        user = self.scope["user"]
        if not user.is_authenticated:
            raise NotAuthenticatedError
        # Subscribed before the check: what changes meanwhile is heard.
        await self.hear_group(broadcast.recording_group(self._recording_id))
        await self.hear_group(broadcast.user_group(user.pk))
        await database_sync_to_async(self.check_rights)()
        await self.say(CHANGED)  # what changed between the page and this moment

    async def recording_changed(self, message: broadcast.RecordingChanged) -> None:
        """Channel layer. The first change is told at once, those of the next second together."""
        self._is_changed = True
        if not self._is_announcing:
            self._is_announcing = True
            self.start(self._announce())

    def check_rights(self) -> None:
        selectors.access_recording_by_id(user_of_cookie(self.scope), self._recording_id)

    @property
    def _recording_id(self) -> str:
        return str(self.scope["url_route"]["kwargs"]["recording_id"])

    async def _announce(self) -> None:
        while self._is_changed:
            self._is_changed = False
            await self.say(CHANGED)
            await asyncio.sleep(QUIET_S)
        self._is_announcing = False
