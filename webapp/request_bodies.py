"""Request bodies, piece by piece.

Daphne reads a body from its file on disk and puts all of it into the application's queue at once:
64 MB of memory for each recording that comes. Here the application reads from the file as it asks
for more.

Touches what Daphne does not document: `Server.create_application`, and that `WebRequest.process`
reads `content`. It is pinned, and `tests/webapp/test_serve.py` holds the behaviour.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import IO, Any, Final

import daphne.server
from daphne.http_protocol import WebRequest

PIECE_BYTES: Final = 256 * 1024
BODY: Final = "webapp.body"

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]


class FiledRequest(WebRequest):
    """A request that keeps its body on disk: Daphne sees an empty one."""

    content: Any
    body: IO[bytes]

    def process(self) -> Any:
        self.body, self.content = self.content, io.BytesIO()
        self.body.seek(0)
        return super().process()


class FiledServer(daphne.server.Server):
    """Hands the body of a FiledRequest to its application."""

    def __init__(self, application: Any, **options: Any) -> None:
        super().__init__(_reading_files(application), **options)

    def create_application(self, protocol: Any, scope: Message) -> Any:
        if scope["type"] == "http":
            scope[BODY] = protocol.body
        return super().create_application(protocol, scope)


def _reading_files(application: Any) -> Any:
    async def surrounded(scope: Message, receive: Receive, send: Any) -> None:
        body = scope.pop(BODY, None)
        if body is None:
            await application(scope, receive, send)
            return
        with closing(body):
            await application(scope, _reader(body, receive), send)

    return surrounded


def _reader(body: IO[bytes], receive: Receive) -> Receive:
    """`receive` with the body in its first messages, in the place of Daphne's empty one."""
    is_read = False

    async def receive_piece() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        piece = body.read(PIECE_BYTES)
        is_read = len(piece) < PIECE_BYTES
        if is_read:
            await receive()  # the empty one
        else:
            await asyncio.sleep(0)  # others get their turn
        return {"type": "http.request", "body": piece, "more_body": not is_read}

    return receive_piece
