"""What every socket does: its tasks, its refusals, changes of rights, and its end.

A consumer touches the database only on connect, for history, for a check of rights, for a choice
that a person makes, and on close.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, Final

import structlog
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError
from redis.exceptions import RedisError

from asr_engine.asyncio_tasks import end_tasks
from asr_engine.errors import EngineError, place_of
from transcription import broadcast
from transcription.errors import ProductError, TryLaterError
from transcription.realtime import wire

log = structlog.get_logger(__name__)

RIGHTS_CHECK_S: Final = 30.0
"""Between two checks of rights: the net below the message that may be lost."""
RIGHTS_SETTLE_S: Final = 1.0
"""After a change of rights was announced: the log-out that announces it has yet to be stored."""


MAX_STRANGERS: Final = 200
"""Sockets of one process that have not said yet who they are: anybody may open one."""

_open_sockets: set[ProductSocket] = set()
_strangers: set[ProductSocket] = set()
"""Both of this process."""


def open_sockets() -> int:
    """How many this process has."""
    return len(_open_sockets)


class ProductSocket(AsyncWebsocketConsumer):
    """Base of all sockets.

    Subclasses say who is there (`on_connect`), whether they may stay (`check_rights`), and what is
    put away at the end (`on_close`).
    """

    def __init__(self) -> None:
        super().__init__()
        self.session_id = ""
        self.is_closing = False
        self._resources = AsyncExitStack()
        self._tasks: set[asyncio.Task[None]] = set()

    # What subclasses are ----------------------------------------------------------------------

    async def on_connect(self) -> None:
        """The socket is accepted. May raise ProductError, EngineError, RedisError."""

    def check_rights(self) -> None:
        """Synchronous: database. Raises ProductError where this socket may not (or no more) be."""
        raise NotImplementedError

    async def on_close(self) -> None:
        """The socket is gone. May raise RedisError, DatabaseError."""

    # The border to Channels -------------------------------------------------------------------

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        _open_sockets.add(self)
        try:
            await super().__call__(scope, receive, send)
        except (RedisError, OSError):  # the channel layer's own: the broker is away
            log.warning("socket_lost_broker")
            await send({"type": "websocket.close", "code": int(wire.CloseCode.TRY_LATER)})
        finally:
            _open_sockets.discard(self)
            await self._release()

    async def dispatch(self, message: dict[str, Any]) -> None:
        """As Channels does, but without its hop into a thread for every packet: what touches the
        database here goes through `database_sync_to_async`, which tidies connections itself."""
        await getattr(self, message["type"].replace(".", "_"))(message)

    async def connect(self) -> None:
        await self.accept()
        await self.guard(self.on_connect())
        if not self.is_closing:
            self.start(self._watch_rights())

    async def _release(self) -> None:
        """Each step whatever becomes of the one before: the broker may be away, or the database."""
        self.is_closing = True
        self.introduced()
        await end_tasks(self._tasks)
        try:
            with contextlib.suppress(RedisError, OSError, DatabaseError):
                await self.on_close()
        finally:
            with contextlib.suppress(RedisError, OSError):  # the broker forgets by itself
                await self._resources.aclose()

    async def guard(self, work: Awaitable[None]) -> None:
        """Every error closes the socket: a reader must not sit before one that has gone deaf."""
        try:
            await work
        except (ProductError, EngineError) as error:
            await self.refuse(error)
        except (RedisError, OSError, DatabaseError):
            await self.refuse(TryLaterError())
        except Exception as error:  # noqa: BLE001 - a socket's border
            # Its text could quote what was said, so only its kind and its place are logged.
            log.error(  # noqa: TRY400 - no traceback for the same reason
                "socket_failed", error=type(error).__name__, place=place_of(error)
            )
            await self.refuse(ProductError())

    def expect_introduction(self) -> None:
        """This socket is of somebody unknown until `introduced`. Raises TryLaterError where too
        many are."""
        if len(_strangers) >= MAX_STRANGERS:
            raise TryLaterError("Too many new connections at once. Try again in a moment.")
        _strangers.add(self)

    def introduced(self) -> None:
        _strangers.discard(self)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` until the socket ends; an error in it closes the socket."""
        task = asyncio.get_running_loop().create_task(self.guard(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def at_end(self, work: Any, *arguments: Any) -> None:
        """Await `work(*arguments)` when the socket ends, the latest first."""
        self._resources.push_async_callback(work, *arguments)

    # Out --------------------------------------------------------------------------------------

    async def say(self, event: dict[str, Any]) -> None:
        await self.send(text_data=wire.dump(event))

    async def refuse(self, error: ProductError | EngineError) -> None:
        """Say why, and close. Only the first refusal counts."""
        if self.is_closing:
            return
        refusal = wire.refusal_of(error)
        await self.say(wire.error_event(self.session_id, refusal))
        await self.finish(refusal.close_code)

    async def finish(self, code: wire.CloseCode) -> None:
        self.is_closing = True
        await self.close(code=int(code))

    # Rights -----------------------------------------------------------------------------------

    async def hear_group(self, group: str) -> None:
        """Get what is broadcast to `group` (`transcription.broadcast`)."""
        self.at_end(self.channel_layer.group_discard, group, self.channel_name)
        await self.channel_layer.group_add(group, self.channel_name)

    async def rights_changed(self, message: broadcast.RightsChanged) -> None:
        """Channel layer: a log-out, a disabled person, another audience, something deleted."""
        self.start(self._check_rights_soon())

    async def _check_rights_soon(self) -> None:
        await asyncio.sleep(RIGHTS_SETTLE_S)
        await database_sync_to_async(self.check_rights)()

    async def _watch_rights(self) -> None:
        while not self.is_closing:
            await asyncio.sleep(RIGHTS_CHECK_S)
            await database_sync_to_async(self.check_rights)()
