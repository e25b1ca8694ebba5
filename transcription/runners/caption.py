"""A recording streamed as a live microphone: a client of `/ws/v1/stream`.

It behaves as a page does: it sends each packet when its last sample has been spoken, keeps what is
not acknowledged, and comes back to the same session after a lost connection. Many at once, and
readers beside them, are `caption_load`; figures are `caption_report`.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import IO, Any, Final, Protocol
from urllib.parse import SplitResult, urlsplit

import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from asr_engine.audio import BYTES_PER_SAMPLE, SAMPLE_RATE, float_to_pcm16
from asr_engine.batch.decode import decode_audio
from asr_engine.protocol import PROTOCOL_VERSION, Packet, pack_packet
from transcription.runners.caption_report import StreamReport

STREAM_PATH: Final = "/ws/v1/stream"
IN_FLIGHT_S: Final = 60
"""Sent and not acknowledged at most: the server refuses more at a time."""
CATCH_UP: Final = 4.0
"""Times real time, after a lost connection."""
RETRY_S: Final = 1.0
GIVE_UP_S: Final = 60.0
HOPELESS: Final = frozenset(
    {"not_authenticated", "not_found", "in_use", "ended", "invalid_input", "bad_packet"}
)
"""Reasons that no later try mends, once a session has begun."""
LASTING: Final = frozenset({"final", "refined", "gap", "paused", "closed"})


class CaptionError(Exception):
    """The server refused the stream for good; the text is its reason."""


def stream_address(url: str) -> str:
    """`url` with the product's own path where it names a server alone. Raises CaptionError."""
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, a bracket that is not closed
        has_host = False
    if not has_host or parts.scheme not in {"ws", "wss"}:
        raise CaptionError(f"{url} is no address of a stream: it must be like wss://HOST:PORT.")
    if parts.path in {"", "/"}:
        return parts._replace(path=STREAM_PATH).geturl()
    return url


class Source(Protocol):
    """Where a stream's PCM16 comes from."""

    @property
    def begun_s(self) -> float | None:
        """When its first sample was spoken (monotonic); None: when the stream begins."""

    def packets(self, samples: int) -> AsyncIterator[bytes]:
        """Pieces of `samples`; the last may be shorter."""


class PcmSource:
    """PCM16 samples by position, from a decoded recording or a live standard input."""

    begun_s = None

    def __init__(self, file: IO[bytes], *, is_live: bool) -> None:
        self._file = file
        self._is_live = is_live

    async def packets(self, samples: int) -> AsyncIterator[bytes]:
        """Pieces of `samples`; the last may be shorter. Only one reader of a live source."""
        size, offset = samples * BYTES_PER_SAMPLE, 0
        while True:
            if self._is_live:
                data = await asyncio.to_thread(self._file.read, size)
            else:
                self._file.seek(offset)
                data = self._file.read(size)
            data = data[: len(data) // BYTES_PER_SAMPLE * BYTES_PER_SAMPLE]
            if not data:
                return
            offset += len(data)
            yield data


def decode_to(path: Path, file: IO[bytes]) -> None:
    """Write the PCM16 of a recording, which all streams read. Raises AudioError."""
    for samples in decode_audio(path):
        file.write(float_to_pcm16(np.asarray(samples)))


class CaptionStream:
    """One session, from hello to closed."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        language: str = "",
        mode_ms: int = 0,
        packet_ms: int = 0,
        session: str = "",
        title: str = "",
        reference: str = "",
        sample_rate: int = SAMPLE_RATE,
        speed: float = 1.0,
        on_event: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        """`session` names one that exists, to be captured; otherwise the server makes one. `speed`
        above 1 speaks faster than real time: the server takes that only in a session that began
        long enough ago."""
        self.report = StreamReport()
        self._speed = speed
        self._rate = sample_rate
        self._url = url
        self._hello = {
            "type": "hello",
            "version": PROTOCOL_VERSION,
            "capture_id": secrets.token_hex(16),
            "sample_rate": sample_rate,
            "encoding": "pcm16",
            "language": language,
            "mode_ms": mode_ms,
            "token": token,
            "session": session,
            "title": title,
            "reference": reference,
        }
        self._packet_ms = packet_ms
        self._on_event = on_event
        self._kept: deque[Packet] = deque()
        self._unsent: deque[Packet] = deque()
        self._changed = asyncio.Event()
        self._is_complete = False
        self._is_stop_sent = False
        self._is_finished = False
        self._started_s = 0.0
        self._spoken_s: list[float] = []
        self._sequence = 0
        self._asked_seq = 0

    async def run(self, source: Source) -> StreamReport:
        """Stream all of `source`. Raises CaptionError when the server refuses it for good."""
        reader: asyncio.Task[None] | None = None
        lost_at_s: float | None = None
        try:
            while not self._is_finished:
                try:
                    async with connect(
                        self._url, max_size=None, max_queue=None, compression=None
                    ) as socket:
                        await self._greet(socket)
                        if self._is_finished:
                            break
                        lost_at_s = None
                        if reader is None:
                            self._started_s = source.begun_s or time.monotonic()
                            reader = asyncio.create_task(self._speak(source))
                        await self._converse(socket)
                except (OSError, ConnectionClosed, InvalidHandshake, TimeoutError) as error:
                    lost_at_s = lost_at_s or time.monotonic()
                    if self._is_finished:
                        break
                    if time.monotonic() - lost_at_s > GIVE_UP_S or not self.report.session:
                        raise self._failure(error) from error
                    self.report.reconnections += 1
                    await asyncio.sleep(RETRY_S)
        finally:
            if reader is not None:
                reader.cancel()
                await asyncio.gather(reader, return_exceptions=True)
        return self.report

    async def _greet(self, socket: ClientConnection) -> None:
        session = self.report.session or self._hello["session"]
        await socket.send(json.dumps({**self._hello, "session": session}))
        while True:
            event = json.loads(await socket.recv())
            if event["type"] == "error":
                self._refused(event)
            if event["type"] == "ready":
                break
            if self._is_finished:
                return
        self.report.session = event["session"]
        self._packet_ms = self._packet_ms or event["packet_ms"]
        self._acknowledge(event["sample"])
        self._unsent = deque(self._kept)
        self._is_stop_sent = False
        if self.report.reconnections:
            await socket.send(json.dumps({"type": "refetch", "after_seq": 0}))

    async def _converse(self, socket: ClientConnection) -> None:
        sender = asyncio.create_task(self._send(socket))
        try:
            async for message in socket:
                event = json.loads(message)
                self._hear(event)
                if self._is_finished:
                    return
                if event["type"] == "head":
                    await self._fetch_missed(socket, event["seq"])
            if self._is_stop_sent:  # closed normally: the rest happens without us
                self._is_finished = True
        finally:
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)

    # Out --------------------------------------------------------------------------------------

    async def _speak(self, source: Source) -> None:
        """A packet exists once its last sample has been spoken."""
        position = 0
        self.report.packet_samples = self._packet_ms * self._rate // 1000
        async for payload in source.packets(self.report.packet_samples):
            packet = Packet(self._sequence, position, payload)
            self._sequence += 1
            position += len(payload) // BYTES_PER_SAMPLE
            spoken_s = self._started_s + position / self._rate / self._speed
            await asyncio.sleep(max(0.0, spoken_s - time.monotonic()))
            self._spoken_s.append(spoken_s)
            self._kept.append(packet)
            self._unsent.append(packet)
            self.report.sent_samples = position
            self._changed.set()
        self._is_complete = True
        self._changed.set()

    async def _send(self, socket: ClientConnection) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._unsent and self._in_flight() < IN_FLIGHT_S * self._rate:
                packet = self._unsent.popleft()
                self._note_sending(packet)
                await socket.send(pack_packet(packet))
                if self._unsent:
                    await asyncio.sleep(self._packet_ms / 1000 / CATCH_UP)
            if self._is_complete and not self._unsent and not self._is_stop_sent:
                self._is_stop_sent = True
                stop = {"type": "stop", "sample": self.report.sent_samples}
                await socket.send(json.dumps(stop))

    def _note_sending(self, packet: Packet) -> None:
        """When it left first: what is sent again after a lost connection is late by then."""
        if packet.sequence == len(self.report.sent_at_s):
            now = time.monotonic()
            self.report.sent_at_s.append(now)
            self.report.late_s.append(now - self._spoken_s[packet.sequence])

    async def _fetch_missed(self, socket: ClientConnection, seq: int) -> None:
        """Ask for the stored changes up to `seq` that never came: what is told while the broker is
        away is told to nobody."""
        asked, self._asked_seq = self._asked_seq, max(seq, self._asked_seq)
        missed = set(range(asked + 1, seq + 1)) - self.report.heard.seqs
        if missed:
            await socket.send(json.dumps({"type": "refetch", "after_seq": min(missed) - 1}))

    def _in_flight(self) -> int:
        next_sample = self._unsent[0].first_sample
        return next_sample - self.report.acknowledged_samples

    def _acknowledge(self, sample: int) -> None:
        self.report.acknowledged_samples = max(self.report.acknowledged_samples, sample)
        while self._kept and _end_of(self._kept[0]) <= sample:
            self._kept.popleft()
        self._changed.set()

    # In ---------------------------------------------------------------------------------------

    def _hear(self, event: dict[str, Any]) -> None:
        now = time.monotonic()
        match event["type"]:
            case "ack":
                self._acknowledge(event["sample"])
            case "error":
                self._refused(event)
            case "history":
                for stored in event["events"]:
                    self.report.heard.keep(stored)
            case "partial":
                self._time_partial(event, now)
            case "final":
                self.report.heard.note_final(event, now)
                lag_s = self._lag_s(event["end_ms"], now)
                self.report.final_s.append(lag_s)
                self.report.lags_s.append(lag_s)
            case "refined":
                self.report.heard.note_refined(event, now)
            case "closed":
                self.report.recording = event.get("recording", "")
                self._is_finished = True
        if event["type"] in LASTING:
            self.report.heard.keep(event)
        if self._on_event is not None:
            self._on_event(event)

    def _time_partial(self, event: dict[str, Any], now: float) -> None:
        self.report.heard.note_partial(event, now)
        if event["utterance"] not in self.report.utterance_starts:
            self.report.utterance_starts.add(event["utterance"])
            self.report.first_partial_s.append(self._lag_s(event["start_ms"], now))
        self.report.lags_s.append(self._lag_s(event["end_ms"], now))

    def _lag_s(self, position_ms: int, now: float) -> float:
        return now - self._started_s - position_ms / 1000 / self._speed

    def _failure(self, error: Exception) -> CaptionError:
        """What kept the stream from its server, in a sentence that the report keeps too."""
        address = urlsplit(self._url)
        if not self.report.problem:
            self.report.problem, self.report.problem_code = _why_lost(error, address)
        return CaptionError(self.report.problem)

    def _refused(self, event: dict[str, Any]) -> None:
        """What may pass by itself is tried again; a session that we stopped may end without us."""
        if event["code"] == "ended" and self._is_complete and self.report.session:
            self._is_finished = True
            return
        if not self.report.session or event["code"] in HOPELESS:
            self.report.problem = event["reason"]
            self.report.problem_code = event["code"]
            raise CaptionError(event["reason"])


def _end_of(packet: Packet) -> int:
    return packet.first_sample + len(packet.payload) // BYTES_PER_SAMPLE


def _why_lost(error: Exception, address: SplitResult) -> tuple[str, str]:
    """(sentence, code)."""
    if isinstance(error, InvalidStatus):
        status = error.response.status_code
        return (
            f"{address.netloc} refused the connection to {address.path} with HTTP status {status}.",
            f"http_{status}",
        )
    return f"{address.netloc} cannot be reached ({type(error).__name__}).", "unreachable"
