"""A bridge for Asterisk's AudioSocket: a call becomes a live session, by the public socket alone.

AudioSocket is a TCP connection for each call, on which the exchange sends frames of one byte of
kind, two bytes of length (big-endian) and a payload: first the call's UUID, then PCM16 of the
caller, and a hang-up. Nothing is sent back. One process takes many calls; what happens to one is no
concern of the others.

Where frames stop and the connection stays (a caller on hold, whose exchange sends no silence), the
time is filled with silence, so that positions stay those of the call. A call without a place among
the live sessions goes on, unheard, and asks again.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import structlog
from django.utils import timezone

from asr_engine.asyncio_tasks import end_tasks
from asr_engine.audio import BYTES_PER_SAMPLE
from transcription.runners.caption import CaptionError, CaptionStream

log = structlog.get_logger(__name__)

FIRST_FRAME_S: Final = 10.0
SILENT_S: Final = 300.0
"""Without a frame for so long, the exchange has forgotten the call."""
FILL_AFTER_S: Final = 0.5
"""Frames that come later than this leave silence; a network's own jitter is shorter."""
AHEAD_S: Final = 5.0
"""Frames that come faster than time, after such a silence, are dropped beyond this."""
KEPT_S: Final = 60.0
"""Of what a call says while no session hears it."""
RETRY_S: Final = 5.0
CLOSING_S: Final = 30.0
"""For the last words of a call after its hang-up."""


class FrameKind(IntEnum):
    """The first byte of a frame."""

    HANGUP = 0x00
    UUID = 0x01
    DTMF = 0x03
    AUDIO_8K = 0x10
    AUDIO_16K = 0x12
    ERROR = 0xFF


RATES: Final = {FrameKind.AUDIO_8K: 8000, FrameKind.AUDIO_16K: 16000}


@dataclass(frozen=True, slots=True)
class BridgeOptions:
    """Where the calls go, and how they are heard."""

    url: str
    token: str
    language: str = ""
    mode_ms: int = 0
    most_calls: int = 200


class CallAudio:
    """What a call says: a source for `CaptionStream`, fed as frames come."""

    def __init__(self, sample_rate: int) -> None:
        self.begun_s: float = time.monotonic()
        self.is_over = False
        self.sample_rate = sample_rate
        self._buffer = bytearray()
        self._fed = 0
        self._changed = asyncio.Event()

    def feed(self, data: bytes) -> None:
        if self._ahead() > AHEAD_S * self.sample_rate:
            return
        self._append(data)
        too_much = len(self._buffer) // BYTES_PER_SAMPLE - int(KEPT_S * self.sample_rate)
        if too_much > 0:  # nobody hears it: what is kept begins later
            del self._buffer[: too_much * BYTES_PER_SAMPLE]
            self._fed -= too_much
            self.begun_s += too_much / self.sample_rate

    def end(self) -> None:
        self.is_over = True
        self._changed.set()

    async def packets(self, samples: int) -> AsyncIterator[bytes]:
        """Pieces of `samples`; the last, after the hang-up, may be shorter."""
        size = samples * BYTES_PER_SAMPLE
        while True:
            while len(self._buffer) < size and not self.is_over:
                self._changed.clear()
                try:
                    async with asyncio.timeout(FILL_AFTER_S):
                        await self._changed.wait()
                except TimeoutError:
                    self._fill()
            data = bytes(self._buffer[:size])
            del self._buffer[:size]
            if not data:
                return
            yield data

    def _ahead(self) -> float:
        """Samples fed beyond those for which there was time."""
        return self._fed - (time.monotonic() - self.begun_s) * self.sample_rate

    def _fill(self) -> None:
        missing = -int(self._ahead())
        if missing > 0:
            self._append(bytes(missing * BYTES_PER_SAMPLE))

    def _append(self, data: bytes) -> None:
        self._buffer += data
        self._fed += len(data) // BYTES_PER_SAMPLE
        self._changed.set()


class AudioSocketBridge:
    """Belongs to one event loop."""

    def __init__(self, options: BridgeOptions) -> None:
        self._options = options
        self._calls: set[asyncio.Task[None]] = set()
        self._open: set[asyncio.StreamWriter] = set()

    async def serve(self, host: str, port: int, stopping: asyncio.Event) -> None:
        """Take calls until `stopping`; then end those that run, with their last words."""
        server = await asyncio.start_server(self._take, host, port)
        names = [socket.getsockname()[:2] for socket in server.sockets]
        log.info("audiosocket_listens", addresses=[f"{name[0]}:{name[1]}" for name in names])
        try:
            await stopping.wait()
        finally:
            server.close()
            for writer in self._open:
                writer.close()
            if self._calls:
                await asyncio.wait(self._calls, timeout=CLOSING_S)
            await end_tasks(self._calls)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._calls) >= self._options.most_calls:
            log.warning("call_refused", most=self._options.most_calls)
            writer.close()
            return
        self._calls.add(task)
        self._open.add(writer)
        try:
            await self._hold(reader, writer)
        except (TimeoutError, ValueError, EOFError, OSError) as error:
            log.info("call_not_understood", error=type(error).__name__)
        except Exception as error:  # noqa: BLE001 - one call's border: the others go on
            log.error("call_failed", error=type(error).__name__)  # noqa: TRY400 - no words in it
        finally:
            self._calls.discard(task)
            self._open.discard(writer)
            writer.close()

    async def _hold(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One call, from its UUID to its last words."""
        reference, kind, payload = await _first_frames(reader)
        if kind not in RATES:
            return
        audio = CallAudio(RATES[FrameKind(kind)])
        audio.feed(payload)
        captions = asyncio.create_task(self._caption(audio, reference))
        log.info("call_began", call=reference)
        try:
            await _feed(audio, reader, kind)
        finally:
            audio.end()
            writer.close()
            await asyncio.wait([captions], timeout=CLOSING_S)
            await end_tasks([captions])
            seconds = round(time.monotonic() - audio.begun_s)
            log.info("call_ended", call=reference, seconds=seconds)

    async def _caption(self, audio: CallAudio, reference: str) -> None:
        """Speak the call into a session, and into another where the first was refused or lost."""
        options = self._options
        while True:
            stream = CaptionStream(
                options.url,
                options.token,
                language=options.language,
                mode_ms=options.mode_ms,
                title=f"Call, {timezone.localtime():%d %b %Y %H:%M}",
                reference=reference,
                sample_rate=audio.sample_rate,
            )
            try:
                await stream.run(audio)
            except CaptionError:
                code = stream.report.problem_code
                log.warning("call_not_captioned", call=reference, code=code)
            else:
                return
            if audio.is_over:
                return
            await asyncio.sleep(RETRY_S)


async def _first_frames(reader: asyncio.StreamReader) -> tuple[str, int, bytes]:
    """The call's UUID, and the first frame that says how it speaks (or that it does not).

    Raises TimeoutError, ValueError, EOFError, OSError.
    """
    async with asyncio.timeout(FIRST_FRAME_S):
        kind, payload = await _frame(reader)
        if kind != FrameKind.UUID:
            raise ValueError("a call begins with its UUID")
        reference = str(uuid.UUID(bytes=payload))
        while True:
            kind, payload = await _frame(reader)
            if kind in {*RATES, FrameKind.HANGUP, FrameKind.ERROR}:
                return reference, kind, payload


async def _feed(audio: CallAudio, reader: asyncio.StreamReader, kind: int) -> None:
    """Until the call hangs up, its exchange vanishes, or the bridge ends and closes it."""
    while True:
        try:
            async with asyncio.timeout(SILENT_S):
                came, payload = await _frame(reader)
        except (TimeoutError, EOFError, OSError):
            return
        if came in {FrameKind.HANGUP, FrameKind.ERROR}:
            return
        if came == kind:
            audio.feed(payload[: len(payload) // BYTES_PER_SAMPLE * BYTES_PER_SAMPLE])


async def _frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Raises EOFError (asyncio.IncompleteReadError), OSError."""
    header = await reader.readexactly(3)
    return header[0], await reader.readexactly(int.from_bytes(header[1:], "big"))
