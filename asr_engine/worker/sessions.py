"""The sessions that this process runs: what the loop knows of each, and reading their audio.

The loop writes everything but `accepted_samples`, which the model thread writes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import structlog

from asr_engine.audio import pcm16_to_float, samples_to_ms
from asr_engine.errors import StreamError
from asr_engine.events import EndpointReason
from asr_engine.protocol import AudioEntry, AudioEntryKind
from asr_engine.streaming import Engine
from asr_engine.worker.ownership import Claim

MAX_HELD_MS = 10_000
"""Audio per session beyond which the rest stays in the audio server until the model has caught
up."""

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class RunningSession:
    """One claimed session and its stream in the engine."""

    session: str
    epoch: int
    mode_ms: int
    next_utterance: int
    resume_sample: int
    opened_at_sample: int
    language: str | None = None
    last_id: str = "0-0"
    read_end_sample: int = 0
    is_open: bool = True
    """The engine has the stream: False between a failure and opening it again."""
    is_idle: bool = False
    is_over: bool = False
    """No more audio is read: the end was reached, or the session went idle."""
    silent_since_s: float | None = None
    failures: int = 0
    """Failures in a row without an endpoint between them."""
    posted_samples: int = 0
    accepted_samples: int = 0
    believed_gap_sample: int | None = None
    """Audio up to here, and not before, is known to have never come."""
    doubts_since_s: float | None = None
    look_again_at_s: float = 0.0
    _marks_known_until: tuple[int, int] = (0, 0)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def of(cls, claim: Claim, *, mode_ms: int, language: str | None) -> RunningSession:
        return cls(
            session=claim.session,
            epoch=claim.epoch,
            mode_ms=mode_ms,
            next_utterance=claim.next_utterance,
            resume_sample=claim.resume_sample,
            opened_at_sample=claim.resume_sample,
            read_end_sample=claim.resume_sample,
            language=language,
        )

    @property
    def stream(self) -> str:
        """The name in the engine: events of an earlier claim cannot be taken for this one's."""
        return f"{self.session}/{self.epoch}"

    def may_read(self, *, behind_ms: int) -> bool:
        """Whether more audio may leave the audio server, with `behind_ms` unheard in the engine."""
        held_ms = samples_to_ms(self.posted_samples - self.accepted_samples) + behind_ms
        return self.is_open and not self.is_over and held_ms < MAX_HELD_MS

    def note_entries(self, entries: Sequence[AudioEntry], last_id: str) -> None:
        """Remember what was read from the audio stream."""
        self.last_id = last_id
        self.silent_since_s = None
        for entry in entries:
            self.posted_samples += len(entry.payload) // 2
            self.read_end_sample = max(self.read_end_sample, entry.end_sample)
            self.is_over = self.is_over or entry.kind is AudioEntryKind.END

    def doubted_gap(self, entries: Sequence[AudioEntry]) -> int | None:
        """Where the audio goes on, if some is missing in or before `entries` that may still be on
        disk."""
        end_sample = self.read_end_sample
        for entry in entries:
            if entry.kind is AudioEntryKind.AUDIO:
                if entry.first_sample > end_sample:
                    gap = entry.first_sample
                    return None if gap == self.believed_gap_sample else gap
                end_sample = max(end_sample, entry.end_sample)
        return None

    def read_again(self, *, at_s: float) -> None:
        """Read the stream from its start once more, not before `at_s`."""
        self._marks_known_until = max(self._marks_known_until, _id_of(self.last_id))
        self.last_id = "0-0"
        self.look_again_at_s = at_s
        self.silent_since_s = None

    def is_known(self, entry: AudioEntry, entry_id: str) -> bool:
        """A mark that was heeded before the stream was read again."""
        is_mark = entry.kind is not AudioEntryKind.AUDIO
        return is_mark and _id_of(entry_id) <= self._marks_known_until

    def is_silent_for(self, now: float) -> float:
        """Seconds since the audio stream was first found empty; call when it was."""
        if self.silent_since_s is None:
            self.silent_since_s = now
        return now - self.silent_since_s

    def start_again(self) -> None:
        """Read the audio from the start of its stream: the engine drops what is final."""
        self.opened_at_sample = self.resume_sample
        self.last_id = "0-0"
        self._marks_known_until = (0, 0)
        self.is_idle = self.is_over = False
        self.silent_since_s = None

    def end_idle(self, engine: Engine) -> None:
        """Finish the words of a stream that gets no more packets, in the model thread."""
        with contextlib.suppress(StreamError):  # the model failed on it: it is opened again
            engine.end_audio(self.stream, reason=EndpointReason.IDLE)

    def feed(self, engine: Engine, entries: Sequence[AudioEntry], arrived_at_s: float) -> None:
        """Give entries to the engine, in the model thread. A bad one is left out."""
        for entry in entries:
            try:
                self._feed_one(engine, entry, arrived_at_s)
            except StreamError as error:
                log.warning("audio_entry_refused", session=self.session, code=error.code)
            self.accepted_samples += len(entry.payload) // 2

    def _feed_one(self, engine: Engine, entry: AudioEntry, arrived_at_s: float) -> None:
        if entry.kind is AudioEntryKind.AUDIO:
            samples = pcm16_to_float(entry.payload)
            engine.accept_audio(self.stream, entry.first_sample, samples, arrived_at_s=arrived_at_s)
        elif entry.kind is AudioEntryKind.END:
            engine.end_audio(self.stream)
        elif entry.kind is AudioEntryKind.PAUSED and entry.first_sample >= self.opened_at_sample:
            engine.pause(self.stream)


def _id_of(entry_id: str) -> tuple[int, int]:
    milliseconds, _, number = entry_id.partition("-")
    return int(milliseconds), int(number)


class SessionTable:
    """The running sessions by session and by stream."""

    def __init__(self) -> None:
        self._by_session: dict[str, RunningSession] = {}
        self._by_stream: dict[str, RunningSession] = {}

    def __iter__(self) -> Iterator[RunningSession]:
        return iter(list(self._by_session.values()))

    def __contains__(self, session: str) -> bool:
        return session in self._by_session

    def __len__(self) -> int:
        return len(self._by_session)

    def add(self, running: RunningSession) -> None:
        self._by_session[running.session] = running
        self._by_stream[running.stream] = running

    def get(self, session: str) -> RunningSession | None:
        return self._by_session.get(session)

    def of_stream(self, stream: str) -> RunningSession | None:
        return self._by_stream.get(stream)

    def remove(self, running: RunningSession) -> None:
        self._by_stream.pop(running.stream, None)
        if self._by_session.get(running.session) is running:
            del self._by_session[running.session]
        running.closed.set()
