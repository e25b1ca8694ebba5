"""Reads the audio streams of all running sessions, with one XREAD of many keys."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import structlog
from redis.asyncio import Redis

from asr_engine.protocol import IDLE_S, AudioEntry, audio_key, whole_key
from asr_engine.worker.connections import StreamEntry, keep_trying, read_streams
from asr_engine.worker.model_thread import ModelThread
from asr_engine.worker.publishing import Publisher
from asr_engine.worker.sessions import RunningSession, SessionTable

POLL_S = 0.010
QUIET_POLL_S = 0.050
"""While there is no session: an idle server should cost nothing."""
ENTRIES_PER_READ = 32
SLOW_READ_S = 2.0
"""A read that took longer met an outage: nobody's silence is counted from before it."""

GAP_PATIENCE_S = 30.0
"""How long a recorder may take to give back from disk what is missing in a stream."""
LOOK_AGAIN_S = 0.2

log = structlog.get_logger(__name__)


class AudioReader:
    """Feeds the engine, and finds out who has gone idle."""

    def __init__(
        self, audio: Redis, thread: ModelThread, sessions: SessionTable, publisher: Publisher
    ) -> None:
        self._audio = audio
        self._thread = thread
        self._sessions = sessions
        self._publisher = publisher

    async def read(self) -> None:
        """Poll, for ever."""
        while True:
            await asyncio.sleep(POLL_S if len(self._sessions) else QUIET_POLL_S)
            await self.poll()

    async def poll(self) -> None:
        """One read of every session that the engine keeps up with."""
        behind_ms = self._thread.behind_ms
        readable = {
            audio_key(running.session): running
            for running in self._sessions
            if running.may_read(behind_ms=behind_ms.get(running.stream, 0))
            and running.look_again_at_s <= time.monotonic()
        }
        if not readable or self._publisher.is_full:
            return
        started = time.monotonic()
        places = {key: running.last_id for key, running in readable.items()}
        found = await keep_trying(
            "audio", lambda: read_streams(self._audio, places, count=ENTRIES_PER_READ)
        )
        now = time.monotonic()
        for key, running in readable.items():
            if now - started > SLOW_READ_S:
                running.silent_since_s = None
            if self._sessions.get(running.session) is not running or not running.is_open:
                continue
            if entries := found.get(key):
                await self._take(running, entries, now)
            elif running.is_silent_for(now) > IDLE_S:
                self._stop_idle(running)

    async def _take(
        self, running: RunningSession, raw_entries: Sequence[StreamEntry], now: float
    ) -> None:
        entries = []
        for raw in raw_entries:
            try:
                entry = AudioEntry.from_fields(raw.fields)
            except (KeyError, ValueError):
                log.warning("audio_entry_not_understood", session=running.session)
            else:
                if not running.is_known(entry, raw.entry_id):
                    entries.append(entry)
        gap_sample = running.doubted_gap(entries)
        if gap_sample is not None:
            await self._ask_about_gap(running, gap_sample, now)
            return
        running.doubts_since_s = None
        running.note_entries(entries, last_id=raw_entries[-1].entry_id)
        self._thread.post(lambda engine: running.feed(engine, entries, now))

    async def _ask_about_gap(self, running: RunningSession, gap_sample: int, now: float) -> None:
        """Audio before `gap_sample` is missing. Where the audio server was lost it may be on disk,
        and the recorder gives it back: until it has looked, no gap is believed. What the stream
        lacks when it is read once more after that has never come."""
        is_whole = await keep_trying(
            "audio", lambda: self._audio.exists(whole_key(running.session))
        )
        if running.doubts_since_s is None:
            running.doubts_since_s = now
            log.info("audio_doubted", session=running.session)
        if is_whole or now - running.doubts_since_s > GAP_PATIENCE_S:
            running.believed_gap_sample = gap_sample
            running.read_again(at_s=now)
        else:
            running.read_again(at_s=now + LOOK_AGAIN_S)

    def _stop_idle(self, running: RunningSession) -> None:
        """Nobody speaks into this session: finish its words and free its slot."""
        log.info("stream_idle", session=running.session)
        running.is_idle = running.is_over = True
        self._thread.post(running.end_idle)
