"""The socket of the one who speaks: audio in, acknowledgements and captions out.

`/ws/v1/live/<session>/capture`. The consumer checks rights, numbers and rate, and hands packets to
the publisher; it decodes nothing and stores nothing. Acknowledgements come from the recorder, when
the audio is on disk.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import replace
from typing import Final

from channels.db import database_sync_to_async
from django.utils import timezone
from redis.exceptions import RedisError

from asr_engine import client
from asr_engine.audio import SAMPLE_RATE
from asr_engine.errors import EngineError
from asr_engine.protocol import (
    MAX_BACKLOG_S,
    MAX_PACKET_BYTES,
    AudioEntry,
    AudioEntryKind,
    Reply,
    ViewerEvent,
    session_key,
    unpack_packet,
)
from transcription.errors import (
    InUseError,
    InvalidInputError,
    SessionEndedError,
    TooFastError,
    TryLaterError,
)
from transcription.feeds.fanout import CaptionEvent
from transcription.feeds.limits import capture_limits
from transcription.feeds.places import Limit
from transcription.feeds.publisher import Lane, StreamHead
from transcription.models import LiveSession, LiveState
from transcription.realtime import wire
from transcription.realtime.allowance import Allowance
from transcription.realtime.encodings import AudioFormat, ChannelDecoder
from transcription.realtime.holder import CaptureHolder
from transcription.realtime.socket import CookieSocket, LiveSocket
from transcription.services import live_sessions

HELLO_TIMEOUT_S: Final = 15.0
CLOSED_TIMEOUT_S: Final = 10.0
"""How long `stop` waits for `closed` before it says that the rest happens without it."""
CLOCK_SLACK_S: Final = 30.0
CLOCK_TOLERANCE: Final = 1.01
"""A sound card's clock and the wall's differ by less."""
USUAL_ENTRY_SAMPLES: Final = SAMPLE_RATE // 5


class CapturingSocket(LiveSocket):
    """What the capture socket and the tools' socket share from `hello` on."""

    def __init__(self) -> None:
        super().__init__()
        self._holder: CaptureHolder | None = None
        self._limits: tuple[Limit, ...] = ()
        self._lane: Lane | None = None
        self._hello: wire.Hello | None = None
        self._admitted: Reply | None = None
        """The mode and packet length that the client was told last."""
        self._wanted: dict[type[wire.Change], wire.Change] = {}
        """The latest choice of each kind: what was asked before it is void."""
        self._changing = asyncio.Lock()
        self._started_at_s = 0.0
        self._is_admitted = False
        self._is_stopping = False
        self._closed = asyncio.Event()
        self._allowance = Allowance(time.monotonic())
        self._last_sequence = -1
        self._end_sample = 0
        self._audio = AudioFormat()
        self._decoder = ChannelDecoder(self._audio)

    async def identify(self, hello: wire.Hello) -> LiveSession:
        """The session that `hello` means. Raises ProductError."""
        return await self.current_session()

    async def on_connect(self) -> None:
        await super().on_connect()
        self.start(self._expect_hello())

    async def _expect_hello(self) -> None:
        await asyncio.sleep(HELLO_TIMEOUT_S)
        if self._hello is None:
            raise InvalidInputError("No hello came.")

    # In ---------------------------------------------------------------------------------------

    async def on_message(self, message: wire.ClientMessage) -> None:
        match message:
            case wire.Hello() if self._hello is None:
                self._hello = message
                await self._begin(message)
            case wire.Mark() if self._lane is not None and not self._is_stopping:
                self._spend(0)
                await self._mark(self._lane, message)
            case wire.SetMode() | wire.SetLanguage() if (
                self._lane is not None and not self._is_stopping
            ):
                self._spend(0)
                _check_lane(self._lane)
                self._wanted[type(message)] = message
                # Not awaited here: packets behind this message must not wait for the engine.
                self.start(self._change(message))
            case wire.Refetch() if self._lane is not None:
                await self.send_history(message.after_seq)
            case _:
                raise InvalidInputError("This message has no place here.")

    async def on_packet(self, data: bytes) -> None:
        if self._lane is None:
            raise InvalidInputError("Audio may follow only after ready.")
        if self._is_stopping:
            return
        size, factor = self._audio.sample_bytes, self._audio.factor
        packet = unpack_packet(
            data, sample_bytes=size, max_bytes=MAX_PACKET_BYTES * size // (2 * factor)
        )
        if packet.sequence <= self._last_sequence:
            raise InvalidInputError("Packets must be numbered in rising order.")
        self._last_sequence = packet.sequence
        samples = len(packet.payload) // size
        if (packet.first_sample + samples) * factor > self._latest_sample():
            raise InvalidInputError("This packet lies in the future of the session's clock.")
        self._spend(samples * factor)
        # What is held already is cut off, in part or whole.
        cut = max(0, self._end_sample // factor - packet.first_sample)
        if cut < samples:
            first_sample = packet.first_sample + cut
            payload = self._decoder.decode(first_sample, packet.payload[cut * size :])
            entry = AudioEntry(AudioEntryKind.AUDIO, first_sample * factor, payload)
            await self._put(self._lane, entry)

    def _spend(self, samples: int) -> None:
        """Raises TooFastError."""
        if not self._allowance.spend(samples, time.monotonic()):
            raise TooFastError

    async def _mark(self, lane: Lane, mark: wire.Mark) -> None:
        asked = mark.sample * self._audio.factor
        sample = min(max(asked, self._end_sample), self._latest_sample())
        if mark.kind == "stop":
            self._is_stopping = True
            await self._put(lane, AudioEntry(AudioEntryKind.END, sample), is_heard=False)
            self.start(self._await_closed())
        elif mark.kind == "pause":
            await self._put(lane, AudioEntry(AudioEntryKind.PAUSED, sample), is_heard=False)
            self._is_admitted = False  # a long pause frees the slot; one that runs answers at once
            await self.links.set_paused(self.session_id, is_paused=True)
        else:
            await self._put(lane, AudioEntry(AudioEntryKind.RESUMED, sample))
            await self.links.set_paused(self.session_id, is_paused=False)

    async def _put(self, lane: Lane, entry: AudioEntry, *, is_heard: bool = True) -> None:
        """`is_heard`: an engine must listen, and is asked again if it had freed the slot."""
        _check_lane(lane)
        if is_heard and not self._is_admitted and self._hello is not None:
            await self._tell_mode(await self._admit(self._hello))
        self._end_sample = entry.end_sample
        self.links.publisher.put(lane, entry)

    # Latency mode and language ----------------------------------------------------------------

    async def _change(self, change: wire.Change) -> None:
        async with self._changing:
            if change != self._wanted[type(change)]:
                return  # overtaken by a later choice
            await self.current_session()  # raises where this person may not capture it any more
            error: EngineError | TryLaterError
            try:
                reply = await self._ask_engine(change)
            except EngineError as refused:
                error = refused
            except (RedisError, OSError):
                error = TryLaterError()
            else:
                match change:
                    case wire.SetMode():
                        await self._keep_mode(change.mode_ms, reply)
                    case wire.SetLanguage():
                        await self._keep_language(change.language)
                return
            refusal = wire.refusal_of(error)
            await self.say(wire.change_refused_event(self.session_id, change, refusal))

    async def _ask_engine(self, change: wire.Change) -> Reply | None:
        """None where no engine hears the session now. Raises EngineError, RedisError."""
        broker, session = self.links.broker, self.session_id
        match change:
            case wire.SetMode(mode_ms=mode_ms):
                return await client.set_stream_mode(broker, session=session, mode_ms=mode_ms)
            case wire.SetLanguage(language=language):
                return await client.set_stream_language(
                    broker, session=session, language=language or None
                )

    async def _keep_mode(self, mode_ms: int, reply: Reply | None) -> None:
        """For this socket's next admission, for the session's next capture, and for the client."""
        if self._hello is not None:
            self._hello = replace(self._hello, mode_ms=mode_ms)
        await database_sync_to_async(live_sessions.note_mode)(
            session_id=self.session_id, mode_ms=mode_ms
        )
        if reply is None and self._admitted is not None:  # no engine hears the session now
            reply = replace(self._admitted, mode_ms=mode_ms)
        if reply is not None:
            self._admitted = reply
            await self.say(wire.mode_event(self.session_id, reply))

    async def _keep_language(self, language: str) -> None:
        """For the session's next admission and capture, and for the client."""
        if self._hello is not None:
            self._hello = replace(self._hello, language="")  # the session's own counts from now on
        await database_sync_to_async(live_sessions.note_language)(
            session_id=self.session_id, language=language
        )
        await self.say(wire.language_event(self.session_id, language))

    async def _look_at_engine(self) -> None:
        """Another engine that took the session over may not have the mode of the one before."""
        if self._hello is None or self._admitted is None or not self._is_admitted:
            return
        epoch = await self.links.broker.hget(session_key(self.session_id), "epoch")
        if int(epoch or 0) > self._admitted.epoch:
            with suppress(EngineError):  # it changes hands again: the next look
                session = await self.current_session()
                await self._tell_mode(await self._ask_for_stream(self._hello, session))

    async def _tell_mode(self, reply: Reply) -> None:
        """Where it is not what the client was told last."""
        told, self._admitted = self._admitted, reply
        if told is None or _mode_of(told) != _mode_of(reply):
            await self.say(wire.mode_event(self.session_id, reply))

    def _latest_sample(self) -> int:
        """No sample can be later than the time since the session began."""
        elapsed_s = (time.time() - self._started_at_s) * CLOCK_TOLERANCE + CLOCK_SLACK_S
        return int(elapsed_s * self._audio.sample_rate) * self._audio.factor

    # Coming and going -------------------------------------------------------------------------

    async def _begin(self, hello: wire.Hello) -> None:
        if hello.channels != 1:
            raise InvalidInputError("This socket takes one channel.")
        self._audio = hello.audio
        self._decoder = ChannelDecoder(hello.audio)
        session = await self.identify(hello)
        if session.state in {LiveState.ENDING, LiveState.ENDED}:
            raise SessionEndedError
        holder = CaptureHolder(self.links.broker, self.session_id, hello.capture_id)
        await holder.take(is_taking_over=hello.is_taking_over)
        self._holder = holder
        self._limits = capture_limits(session.owner_id)
        await self.links.places.take(self.session_id, *self._limits)
        await self.links.publisher.take_over(self.session_id, holder.connection)
        await self.links.announce(
            ViewerEvent(type="taken", session=self.session_id, connection=holder.connection)
        )
        await self.follow()
        head = await self.links.publisher.head(self.session_id)
        _check_backlog(head.entries, USUAL_ENTRY_SAMPLES)
        self._admitted = await self._admit(hello)
        session = await self.current_session()
        self._started_at_s = (session.started_at or timezone.now()).timestamp()
        acknowledged = max(await self._acknowledged_sample(), session.samples)
        next_sample = await self._next_sample(session, head, acknowledged)
        self._lane = Lane(self.session_id, holder.connection)
        await self.say(
            wire.capture_ready_event(
                session=self.session_id,
                state=session.state,
                admitted=self._admitted,
                language=hello.language or session.language,
                sample=acknowledged // self._audio.factor,
                next_sample=-(-next_sample // self._audio.factor),
                seq=session.last_seq,
            )
        )
        self.start(self.pass_on())

    async def _admit(self, hello: wire.Hello) -> Reply:
        """Ask for a slot; the session is live from then on. Raises AdmissionError and others."""
        session = await self.current_session()
        reply = await self._ask_for_stream(hello, session)
        await database_sync_to_async(live_sessions.start_live_session)(session=session)
        self._is_admitted = True
        await self.links.announce(live_sessions.state_event(self.session_id, LiveState.LIVE))
        return reply

    async def _ask_for_stream(self, hello: wire.Hello, session: LiveSession) -> Reply:
        """Raises AdmissionError and others."""
        return await client.request_stream(
            self.links.broker,
            session=self.session_id,
            language=hello.language or session.language or None,
            mode_ms=hello.mode_ms or session.mode_ms,
        )

    async def _acknowledged_sample(self) -> int:
        value = await self.links.broker.hget(session_key(self.session_id), "acknowledged_sample")
        return int(value or 0)

    async def _next_sample(self, session: LiveSession, head: StreamHead, acknowledged: int) -> int:
        """Where the session's clock stands now: the end of its audio, and the time since then."""
        if head.last is not None:
            end, at_s = head.last.end_sample, head.last_at_ms / 1000
        elif acknowledged and session.last_packet_at is not None:
            end, at_s = acknowledged, session.last_packet_at.timestamp()
        else:
            return acknowledged
        if await self.links.is_paused(self.session_id):
            return end
        return end + max(0, int((time.time() - at_s) * SAMPLE_RATE))

    async def on_event(self, event: CaptionEvent) -> None:
        if event.type == "taken":
            if self._holder and event.data["connection"] != self._holder.connection:
                raise InUseError
            return
        if event.type == "ack" and self._audio.factor > 1:
            await self.say(event.data | {"sample": event.data["sample"] // self._audio.factor})
        else:
            await super().on_event(event)
        state = event.data.get("state")
        if state == LiveState.WAITING:
            self._is_admitted = False
        if event.type == "closed":
            self._closed.set()
        if not self._is_stopping and (event.type == "closed" or state == LiveState.ENDING):
            raise SessionEndedError

    async def _await_closed(self) -> None:
        try:
            async with asyncio.timeout(CLOSED_TIMEOUT_S):
                await self._closed.wait()
        except TimeoutError:
            await self.say(
                {
                    "type": "state",
                    "session": self.session_id,
                    "state": LiveState.ENDING.value,
                    "reason": "Saved. The transcript is being finished.",
                }
            )
        await self.finish(wire.CloseCode.NORMAL)

    async def on_tick(self) -> None:
        if self._holder is None or self._lane is None:
            return
        await self._holder.renew()
        _check_lane(self._lane)
        await self._look_at_engine()
        entries = await self.links.publisher.backlog_entries(self.session_id)
        _check_backlog(entries, self._lane.usual_entry_samples or USUAL_ENTRY_SAMPLES)

    async def on_close(self) -> None:
        if self._lane is not None:
            await database_sync_to_async(live_sessions.note_packet)(
                session_id=self.session_id, at=timezone.now()
            )
        if self._holder is not None:
            if await self._holder.release():
                await self.links.places.give_back(self.session_id, *self._limits)
            else:  # who took the session over has the place too
                self.links.places.forget(self.session_id, *self._limits)


def _mode_of(reply: Reply) -> tuple[int, int, tuple[int, ...]]:
    return reply.mode_ms, reply.packet_ms, reply.modes_ms


def _check_lane(lane: Lane) -> None:
    """Raises InUseError where another socket has taken over, TryLaterError where audio was lost
    on its way: the page still keeps it."""
    if lane.is_superseded:
        raise InUseError
    if lane.is_broken:
        raise TryLaterError


def _check_backlog(entries: int, entry_samples: float) -> None:
    """Raises TryLaterError above MAX_BACKLOG_S of audio that nobody has read."""
    if entries * entry_samples > MAX_BACKLOG_S * SAMPLE_RATE:
        raise TryLaterError


class CaptureSocket(CookieSocket, CapturingSocket):
    """The page's socket: the owner alone."""

    is_capturing = True
