"""A network between a client and a server that can fail: a relay on a port of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

PIECE_BYTES = 65536


class Network:
    """Relays connections to `port` of this machine."""

    def __init__(self, port: int) -> None:
        self.port = 0
        self._target = port
        self._is_cut = False
        self._flows = asyncio.Event()
        self._flows.set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def cut(self, seconds: float) -> None:
        """Break every connection, and refuse new ones for a while."""
        self._is_cut = True
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(seconds)
        self._is_cut = False

    async def stall(self, seconds: float) -> None:
        """Deliver nothing for a while, then break every connection: what was on its way is lost."""
        self._flows.clear()
        await asyncio.sleep(seconds)
        for writer in list(self._writers):
            writer.transport.abort()
        self._flows.set()

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client's connection, both ways, until either side ends it."""
        if self._is_cut:
            writer.transport.abort()
            return
        try:
            target_reader, target_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, target_writer}
        self._writers |= ends
        pumps = [
            asyncio.create_task(self._pump(reader, target_writer)),
            asyncio.create_task(self._pump(target_reader, writer)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self._writers -= ends
            for end in ends:
                end.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(PIECE_BYTES):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def network_to(port: int) -> AsyncIterator[Network]:
    network = Network(port)
    server = await asyncio.start_server(network.relay, "127.0.0.1", 0)
    network.port = server.sockets[0].getsockname()[1]
    try:
        yield network
    finally:
        server.close()
        await network.cut(0)
