"""HTTP to the real application, a piece of the answer at a time: for streams that do not end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Self

from asgiref.testing import ApplicationCommunicator

from webapp.asgi import application

PATIENCE_S = 60


class Exchange:
    """One request and its answer: `async with` sends it, and hangs up at the end."""

    def __init__(
        self, path: str, *, query: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        named = {"host": "localhost", **(headers or {})}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), text.encode()) for name, text in named.items()],
            "client": ("127.0.0.1", 12345),
            "server": ("localhost", 80),
        }
        self._communicator = ApplicationCommunicator(application, scope)
        self._waiting = b""
        self.is_over = False
        self.status = 0
        self.headers: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        await self._communicator.send_input({"type": "http.request", "body": b""})
        start = await self._communicator.receive_output(PATIENCE_S)
        self.status = start["status"]
        self.headers = {name.decode(): text.decode() for name, text in start["headers"]}
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._communicator.send_input({"type": "http.disconnect"})
        await self._communicator.wait(PATIENCE_S)

    async def event(self, kind: str = "") -> dict[str, str]:
        """The next Server-Sent Event, or the next of this kind; its fields by their names."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                while b"\n\n" not in self._waiting:
                    await self._more()
                written, _, self._waiting = self._waiting.partition(b"\n\n")
                pairs = (line.partition(": ") for line in written.decode().splitlines())
                fields = {name: text for name, _, text in pairs}
                if "data" in fields and kind in {"", fields["event"]}:
                    return fields

    async def rest(self) -> bytes:
        """Everything until its end."""
        while not self.is_over:
            await self._more()
        return self._waiting

    async def _more(self) -> None:
        if self.is_over:
            raise EOFError
        piece: Any = await self._communicator.receive_output(PATIENCE_S)
        self._waiting += piece.get("body", b"")
        self.is_over = not piece.get("more_body", False)
