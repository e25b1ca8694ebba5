"""One reader of a live session's captions who is no socket: a place, a feed, and its rights.

A task of its own holds all three, so that they are given back whatever becomes of the reader, also
of one that went before it had read anything.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Final

from channels.layers import get_channel_layer

from asr_engine.asyncio_tasks import end_tasks
from transcription import broadcast
from transcription.errors import ProductError
from transcription.feeds.fanout import CaptionEvent, Feed
from transcription.feeds.limits import viewer_limits
from transcription.feeds.links import shared_links

RIGHTS_CHECK_S: Final = 30.0
"""Between two checks of rights: the net below the message that may be lost."""
RIGHTS_SETTLE_S: Final = 1.0
"""After a change of rights was announced: the log-out that announces it has yet to be stored."""
BEGIN_S: Final = 20.0
"""Who has not begun to read by then has gone."""
OVER: Final = CaptionEvent("over", "", {})
"""What a feed yields last, once nothing more comes."""


class CaptionReader:
    """`feed` brings the events of `session` from `open` to `close`, or until OVER; `problem` then
    says why.

    `check_rights` raises ProductError where this reader may not (any more) be one.
    """

    def __init__(
        self, session: str, user_id: int, check_rights: Callable[[], Awaitable[None]]
    ) -> None:
        self.feed = Feed()
        self.problem: ProductError | None = None
        self._session = session
        self._user_id = user_id
        self._check_rights = check_rights
        self._has_begun = asyncio.Event()
        self._has_left = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Raises TooManyViewersError, RedisError, TimeoutError while the broker is away."""
        is_open: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.get_running_loop().create_task(self._hold(is_open))
        await is_open

    def begin(self) -> None:
        """Somebody reads the feed."""
        self._has_begun.set()

    def close(self) -> None:
        self._has_left.set()

    async def _hold(self, is_open: asyncio.Future[None]) -> None:
        try:
            async with AsyncExitStack() as held:
                channel = await self._take(held)
                if not is_open.done():
                    is_open.set_result(None)
                await self._stay(held, channel)
        except Exception as error:  # noqa: BLE001 - handed to who opens; later, the reader is told
            if not is_open.done():
                is_open.set_exception(error)
        finally:
            self.feed.offer(OVER)

    async def _take(self, held: AsyncExitStack) -> str:
        """A place, the feed, and a channel that tells of changes of rights: its name."""
        links = await held.enter_async_context(shared_links())
        who, limits = secrets.token_hex(8), viewer_limits(self._session)
        await links.places.take(who, *limits)
        held.push_async_callback(links.places.give_back, who, *limits)
        layer = get_channel_layer()
        channel: str = await layer.new_channel()
        for group in (
            broadcast.user_group(self._user_id),
            broadcast.session_group(self._session),
        ):
            held.push_async_callback(layer.group_discard, group, channel)
            await layer.group_add(group, channel)
        held.push_async_callback(links.fanout.unsubscribe, self._session, self.feed)
        await links.fanout.subscribe(self._session, self.feed)
        return channel

    async def _stay(self, held: AsyncExitStack, channel: str) -> None:
        """Until the reader leaves, or may not stay."""
        works = (self._wait_for_end(), self._hear_of_rights(channel), self._watch_rights())
        tasks = [asyncio.ensure_future(work) for work in works]
        held.push_async_callback(end_tasks, tasks)
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            error = task.exception()
            if isinstance(error, ProductError):
                self.problem = error

    async def _wait_for_end(self) -> None:
        async with asyncio.timeout(BEGIN_S):
            await self._has_begun.wait()
        await self._has_left.wait()

    async def _hear_of_rights(self, channel: str) -> None:
        layer = get_channel_layer()
        while True:
            await layer.receive(channel)
            await asyncio.sleep(RIGHTS_SETTLE_S)
            await self._check_rights()

    async def _watch_rights(self) -> None:
        while True:
            await asyncio.sleep(RIGHTS_CHECK_S)
            await self._check_rights()
