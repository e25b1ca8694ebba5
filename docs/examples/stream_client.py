"""A client of the streaming socket in one file: speaks a recording, prints what is understood.

    pip install websockets
    export TRANSCRIBE_TOKEN=tr_…
    python stream_client.py wss://captions.example.org call.wav --speakers Caller Desk

A WAV file of 16-bit samples at 8 or 16 kHz, of one channel or two (each is a speaker), or raw G.711
at 8 kHz with `--encoding mulaw` or `alaw`. It behaves as a microphone does: a packet leaves when it
has been spoken, and what the server has not acknowledged is kept and sent again after a lost
connection. `docs/streaming-protocol.md` tells the rules.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import struct
import sys
import time
import wave
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

HEADER = struct.Struct(">II")  # sequence number, index of the first sample
TRY_AGAIN = {1006, 1011, 1012, 4429, 4503}
RETRY_S, GIVE_UP_S = 2.0, 60.0
TELEPHONE_RATE = 8000


class RefusedError(Exception):
    """The server does not want this conversation; the text says why."""


@dataclass
class Audio:
    """What is to be spoken. A frame is one sample of each channel."""

    data: bytes
    encoding: str
    sample_rate: int
    channels: int

    @property
    def frame_bytes(self) -> int:
        return self.channels * (2 if self.encoding == "pcm16" else 1)


def read_audio(path: Path, encoding: str, channels: int) -> Audio:
    if encoding != "pcm16":
        return Audio(path.read_bytes(), encoding, TELEPHONE_RATE, channels)
    with wave.open(str(path)) as file:
        if file.getsampwidth() != 2 or file.getframerate() not in {8000, 16000}:
            sys.exit("The WAV file must have 16-bit samples at 8 or 16 kHz.")
        data = file.readframes(file.getnframes())
        return Audio(data, encoding, file.getframerate(), file.getnchannels())


class StreamClient:
    """One conversation, over as many connections as it takes."""

    def __init__(self, url: str, hello: dict[str, Any], audio: Audio) -> None:
        self.url, self.hello, self.audio = url, hello, audio
        self.packet_frames = 0
        self.unsent: deque[tuple[int, bytes]] = deque()  # spoken, for this connection
        self.kept: deque[tuple[int, bytes]] = deque()  # not acknowledged
        self.sequence = 0
        self.is_spoken = False
        self.is_closed = False
        self.grown = asyncio.Event()

    async def run(self) -> None:
        speaker: asyncio.Task[None] | None = None
        lost_at: float | None = None
        try:
            while not self.is_closed:
                try:
                    async with connect(self.url, max_size=None) as socket:
                        await self.greet(socket)
                        lost_at = None
                        speaker = speaker or asyncio.create_task(self.speak())
                        await self.converse(socket)
                except (OSError, ConnectionClosed, InvalidHandshake) as error:
                    code = 1006
                    if isinstance(error, ConnectionClosed) and error.rcvd:
                        code = error.rcvd.code
                    lost_at = lost_at or time.monotonic()
                    if code not in TRY_AGAIN or time.monotonic() - lost_at > GIVE_UP_S:
                        raise RefusedError(f"The connection was closed ({code}).") from error
                    await asyncio.sleep(RETRY_S)
        finally:
            if speaker is not None:
                speaker.cancel()

    async def greet(self, socket: ClientConnection) -> None:
        await socket.send(json.dumps(self.hello))
        while True:
            event = json.loads(await socket.recv())
            if event["type"] == "error":
                print(event["reason"], file=sys.stderr)
            if event["type"] == "ready":
                break
        show(event)
        if self.hello.get("sessions"):  # what was told while the connection was lost
            await socket.send(json.dumps({"type": "refetch", "after_seq": 0}))
        # The same conversation, should this connection be lost.
        self.hello["sessions"] = event.get("sessions") or [event["session"]]
        self.packet_frames = event["packet_ms"] * self.audio.sample_rate // 1000
        self.acknowledge(event["sample"])
        self.unsent = deque(self.kept)

    async def speak(self) -> None:
        """Packets come into being as time passes."""
        started, size = time.monotonic(), self.packet_frames * self.audio.frame_bytes
        for offset in range(0, len(self.audio.data), size):
            packet = (offset // self.audio.frame_bytes, self.audio.data[offset : offset + size])
            spoken_s = (offset + len(packet[1])) / self.audio.frame_bytes / self.audio.sample_rate
            await asyncio.sleep(max(0.0, started + spoken_s - time.monotonic()))
            self.kept.append(packet)
            self.unsent.append(packet)
            self.grown.set()
        self.is_spoken = True
        self.grown.set()

    async def converse(self, socket: ClientConnection) -> None:
        sender = asyncio.create_task(self.send(socket))
        try:
            async for message in socket:
                event = json.loads(message)
                show(event)
                if event["type"] == "ack":
                    self.acknowledge(event["sample"])
            self.is_closed = True  # with code 1000, after `stop`
        finally:
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)

    async def send(self, socket: ClientConnection) -> None:
        while True:
            while self.unsent:
                first, payload = self.unsent.popleft()
                await socket.send(HEADER.pack(self.sequence, first) + payload)
                self.sequence += 1
            if self.is_spoken:
                frames = len(self.audio.data) // self.audio.frame_bytes
                await socket.send(json.dumps({"type": "stop", "sample": frames}))
                return
            self.grown.clear()
            await self.grown.wait()

    def acknowledge(self, sample: int) -> None:
        while self.kept:
            first, payload = self.kept[0]
            if first + len(payload) // self.audio.frame_bytes > sample:
                break
            self.kept.popleft()


def show(event: dict[str, Any]) -> None:
    """One event a line, as it came, for whatever reads this; the words for who looks on."""
    print(json.dumps(event, ensure_ascii=False), flush=True)
    if event["type"] in {"final", "refined"}:
        who = f"{event['speaker']}: " if "speaker" in event else ""
        print(f"[{event['start_ms'] / 1000:7.1f}] {who}{event['text']}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description="Speak a recording into the streaming socket.")
    parser.add_argument("server", help="wss://HOST[:PORT]")
    parser.add_argument("file", type=Path)
    parser.add_argument("--encoding", choices=["pcm16", "mulaw", "alaw"], default="pcm16")
    parser.add_argument("--channels", type=int, choices=[1, 2], default=1, help="of raw G.711")
    parser.add_argument("--speakers", nargs=2, default=[], help="of two channels")
    parser.add_argument("--language", default="")
    parser.add_argument("--title", default="")
    parser.add_argument("--reference", default="")
    options = parser.parse_args()
    audio = read_audio(options.file, options.encoding, options.channels)
    hello = {
        "type": "hello",
        "version": 1,
        "capture_id": secrets.token_hex(16),
        "token": os.environ["TRANSCRIBE_TOKEN"],  # never on the command line, where others see it
        "encoding": audio.encoding,
        "sample_rate": audio.sample_rate,
        "channels": audio.channels,
        "speakers": options.speakers if audio.channels == 2 else [],
        "language": options.language,
        "title": options.title,
        "reference": options.reference,
    }
    client = StreamClient(options.server.rstrip("/") + "/ws/v1/stream", hello, audio)
    try:
        asyncio.run(client.run())
    except RefusedError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
