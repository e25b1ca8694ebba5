"""A telephone exchange by script: calls over AudioSocket, each saying words of its own."""

from __future__ import annotations

import asyncio
import socket
import struct
import uuid
from dataclasses import dataclass, field

import numpy as np

from asr_engine.audio import float_to_pcm16
from asr_engine.backends.scripted import (
    TELEPHONE_WORD_COUNT,
    encode_blocks,
    script,
    script_text,
)

FRAME_MS = 20
RATE = 8000
HANGUP, UUID, AUDIO = 0x00, 0x01, 0x10


def frame(kind: int, payload: bytes = b"") -> bytes:
    return bytes([kind]) + len(payload).to_bytes(2, "big") + payload


@dataclass
class ScriptedCall:
    """Says `words` numbers from `first` on, in real time; `cut_after_s` kills its connection."""

    port: int
    words: int
    first: int = 0
    cut_after_s: float | None = None
    id: uuid.UUID = field(default_factory=uuid.uuid4)

    def __post_init__(self) -> None:
        first = self.first % (TELEPHONE_WORD_COUNT - self.words)
        blocks = script(self.words, first=first)
        self.text = script_text(blocks)
        # The tones end at 3.4 kHz: every other sample is all that a telephone carries.
        self.pcm = float_to_pcm16(np.asarray(encode_blocks(blocks, is_telephone=True))[::2])

    async def run(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        del reader
        size, started = 2 * RATE * FRAME_MS // 1000, asyncio.get_running_loop().time()
        writer.write(frame(UUID, self.id.bytes))
        for number, offset in enumerate(range(0, len(self.pcm), size)):
            due_s = started + number * FRAME_MS / 1000
            await asyncio.sleep(max(0.0, due_s - asyncio.get_running_loop().time()))
            if self.cut_after_s is not None and number * FRAME_MS > 1000 * self.cut_after_s:
                kill(writer)
                return
            writer.write(frame(AUDIO, self.pcm[offset : offset + size]))
            await writer.drain()
        writer.write(frame(HANGUP))
        await writer.drain()
        writer.close()


def kill(writer: asyncio.StreamWriter) -> None:
    """End a connection as a dying process does: by a reset, without a word."""
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
