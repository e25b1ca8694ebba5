"""The socket of a recording's page: says that something changed, and the page fetches it.

No text and no figure travels here, so a message that is lost costs nothing that a later one does
not bring.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any, Final

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from redis.exceptions import RedisError

from asr_engine.asyncio_tasks import end_tasks
from transcription import broadcast, selectors
from transcription.errors import ProductError
from transcription.realtime.cookies import user_of_cookie
from transcription.realtime.wire import refusal_of

CHANGED: Final = json.dumps({"type": "changed"})
QUIET_S: Final = 1.0
"""At most one message in this time, however often the recording changes."""
RIGHTS_SETTLE_S: Final = 1.0
"""After a change of rights was announced: the log-out that announces it has yet to be stored."""


class RecordingSocket(AsyncWebsocketConsumer):
    """Rights are checked when the page connects, and again whenever they change."""

    def __init__(self) -> None:
        super().__init__()
        self._groups: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_changed = False
        self._is_announcing = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await end_tasks(self._tasks)
            with contextlib.suppress(RedisError, OSError):  # the broker forgets by itself
                for group in self._groups:
                    await self.channel_layer.group_discard(group, self.channel_name)

    async def connect(self) -> None:
        await self.accept()
        # Subscribed before the check: what changes meanwhile is heard.
        await self._follow(broadcast.recording_group(self._recording_id))
        await self._follow(broadcast.user_group(self.scope["user"].pk or 0))
        if await self._may_stay():
            # What changed between the page and this moment.
            await self.send(text_data=CHANGED)

    async def recording_changed(self, message: broadcast.RecordingChanged) -> None:
        """Channel layer. The first change is told at once, those of the next second together."""
        self._is_changed = True
        if not self._is_announcing:
            self._is_announcing = True
            self._start(self._announce())

    async def rights_changed(self, message: broadcast.RightsChanged) -> None:
        """Channel layer: a log-out, a disabled person, another audience, a deleted recording."""
        self._start(self._check_rights_soon())

    @property
    def _recording_id(self) -> str:
        return str(self.scope["url_route"]["kwargs"]["recording_id"])

    async def _follow(self, group: str) -> None:
        self._groups.append(group)
        await self.channel_layer.group_add(group, self.channel_name)

    async def _announce(self) -> None:
        while self._is_changed:
            self._is_changed = False
            await self.send(text_data=CHANGED)
            await asyncio.sleep(QUIET_S)
        self._is_announcing = False

    async def _check_rights_soon(self) -> None:
        await asyncio.sleep(RIGHTS_SETTLE_S)
        await self._may_stay()

    async def _may_stay(self) -> bool:
        try:
            await database_sync_to_async(self._check_rights)()
        except ProductError as error:
            await self.close(code=refusal_of(error).close_code)
            return False
        return True

    def _check_rights(self) -> None:
        selectors.access_recording_by_id(user_of_cookie(self.scope), self._recording_id)

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
