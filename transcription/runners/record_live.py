"""The recorder: live audio on disk, finals in the database, and their announcement.

One process leads and a standby waits. Nothing is acknowledged, trimmed or deleted before what it
stands for is safe, and every step may be done again: a recorder killed at any point loses nothing,
and the next one goes on from the events that are still pending, the audio that is still in its
streams, and the sessions' rows.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import structlog
from django.conf import settings
from django.db import DatabaseError, DataError, IntegrityError, transaction
from django.utils import timezone
from redis import Redis
from redis.exceptions import RedisError, ResponseError

from asr_engine.protocol import (
    EVENTS_GROUP,
    EVENTS_KEY,
    SESSIONS_KEY,
    AudioEntry,
    AudioEntryKind,
    EngineEvent,
    EngineEventKind,
    ViewerEvent,
    audio_key,
    captions_channel,
    capture_key,
    decode_engine_event,
    encode,
    session_key,
    whole_key,
    writer_key,
)
from transcription.models import LiveMark, LiveMarkKind, LiveSession, LiveState, Recording
from transcription.runners.recorder.finishing import Finisher
from transcription.runners.recorder.leadership import Leadership
from transcription.runners.recorder.refill import refill_audio
from transcription.runners.recorder.refining import RefineRequests
from transcription.runners.recorder.track import AudioTrack, TrackMark
from transcription.services import live_sessions, storage
from webapp.config import site_settings

log = structlog.get_logger(__name__)

TICK_S: Final = 1.0
BLOCK_MS: Final = 50
BATCH: Final = 200
SLOW_TICKS: Final = 5
"""Every so many ticks: heads for viewers, clocks to the database."""
HEADS_AFTER_LOSS: Final = 4
"""Ticks with heads after a server was away: what was announced meanwhile reached nobody, and the
web processes come back to the broker in their own time."""
HEARD_TIMEOUT_S: Final = 120.0
"""How long an ended session waits for engines that were to finish it. The job hears it anyway."""
UNSTARTED_LIFE: Final = timedelta(days=1)
RETRY_S: Final = 0.5
SYNC_THREADS: Final = 4
SYNC_STEPS: Final = 16
"""Steps over which the syncs of a second are spread: begun all at once, a hundred of them and their
acknowledgements would hold up captions."""


class Recorder:
    """One thread runs it; only syncs and finished files happen beside it."""

    def __init__(self, broker: Redis, audio: Redis) -> None:
        self._broker = broker
        self._audio = audio
        self.leadership = Leadership(broker)
        self._tracks: dict[str, AudioTrack] = {}
        self._marks: deque[tuple[str, TrackMark]] = deque()
        self._announcements: list[ViewerEvent] = []
        self._ended_at_s: dict[str, float] = {}
        self._heard: set[str] = set()
        self._syncs: dict[str, Future[int]] = {}
        self._due_syncs: deque[str] = deque()
        self._syncs_a_step = 1
        self._sync_pool = ThreadPoolExecutor(SYNC_THREADS, thread_name_prefix="sync")
        self._finisher = Finisher()
        self._refining = RefineRequests(broker)
        self._is_leading = False
        self._has_pending = True
        self._audio_run = ""
        self._whole: set[str] = set()
        self._ticks = 0
        self._extra_heads = 0
        self._next_tick_s = 0.0

    def run(self, should_stop: Callable[[], bool]) -> None:
        """Work until `should_stop`; an error of a server is waited out, never the end."""
        while not should_stop():
            try:
                if not self.step():
                    time.sleep(RETRY_S)
            except (RedisError, DatabaseError, OSError) as error:
                log.warning("recorder_step_failed", error=type(error).__name__)
                self._announcements.clear()  # heads lead readers to what is stored
                self._has_pending = True
                self._extra_heads = HEADS_AFTER_LOSS
                time.sleep(RETRY_S)
        self.close()

    def step(self) -> bool:
        """One round; False where another recorder leads."""
        if time.monotonic() >= self._next_tick_s:
            self._next_tick_s = time.monotonic() + TICK_S
            if not self.leadership.hold():
                self._stand_by()
                return False
            if not self._is_leading:
                self._lead()
            self.tick()
        elif not self._is_leading:
            return False
        self._read_events()
        self._read_audio()
        self._acknowledge()
        self._finish()
        self._tell_viewers()
        return True

    def close(self) -> None:
        """Everything that was read is put on disk; a standby takes over at once."""
        for track in self._tracks.values():
            track.sync()
        self._stand_by()
        self._sync_pool.shutdown()
        self._finisher.close()
        try:
            self.leadership.give_up()
        except RedisError:
            log.info("leadership_left_to_expire")

    def _stand_by(self) -> None:
        self._is_leading = False
        self._marks.clear()  # the successor finds them again: their audio is not acknowledged
        for session_id in list(self._tracks):
            self._forget(session_id)

    def _lead(self) -> None:
        log.info("recorder_leads")
        try:
            self._broker.xgroup_create(EVENTS_KEY, EVENTS_GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise
        self._is_leading = True
        self._has_pending = True
        self._extra_heads = HEADS_AFTER_LOSS
        self._audio_run = ""
        self._tidy_ended()

    # Events of the engines --------------------------------------------------------------------

    def _read_events(self) -> None:
        """Store, announce, then acknowledge; those of a recorder that died come first."""
        answer: Any = self._broker.xreadgroup(
            EVENTS_GROUP,
            "recorder",
            {EVENTS_KEY: "0" if self._has_pending else ">"},
            count=BATCH,
            block=BLOCK_MS,
        )
        entries = answer[0][1] if answer else []
        if not entries:
            self._has_pending = False
        for entry_id, fields in entries:
            try:
                event = decode_engine_event(fields[b"e"])
                uuid.UUID(event.session)
                self._store(event)
            except (KeyError, TypeError, ValueError, DataError, IntegrityError) as error:
                # It would fail for ever, and hold up everything behind it.
                log.error(  # noqa: TRY400 - a traceback could quote what was said
                    "engine_event_unusable", error=type(error).__name__
                )
            self._tell_viewers()
            with self._broker.pipeline(transaction=False) as pipeline:
                pipeline.xack(EVENTS_KEY, EVENTS_GROUP, entry_id)
                pipeline.xdel(EVENTS_KEY, entry_id)
                pipeline.execute()

    def _store(self, event: EngineEvent) -> None:
        if event.kind is EngineEventKind.FINAL:
            stored = live_sessions.record_final(event=event)
            if stored is not None:
                self._announce(live_sessions.final_event(stored))
                self._refining.note_final(event.session)
        elif event.kind is EngineEventKind.GAP:
            mark = TrackMark(
                LiveMarkKind.GAP, event.start_ms, event.end_ms, int(time.time() * 1000)
            )
            self._store_mark(event.session, mark)
        elif event.kind is EngineEventKind.WAITING:
            self._wait_for_speaker(event)
        elif event.kind is EngineEventKind.ENDED:
            self._move_to_ending(event.session)
            live_sessions.record_heard(session_id=event.session)
            if event.session in self._tracks:
                self._heard.add(event.session)
            else:
                self._drop_if_over(event.session)

    def _wait_for_speaker(self, event: EngineEvent) -> None:
        """Ignored where the speaker has come back and a newer claim was made meanwhile; not told
        where readers know of a pause."""
        answer: Any = self._broker.hmget(session_key(event.session), "epoch", "is_paused")
        epoch, is_paused = answer
        if epoch is not None and int(epoch) != event.epoch:
            return
        if not live_sessions.move_live_session(event.session, LiveState.WAITING):
            self._drop_if_over(event.session)
        elif is_paused != b"1":
            self._announce(live_sessions.state_event(event.session, LiveState.WAITING))

    def _announce(self, event: ViewerEvent) -> None:
        """With the next `_tell_viewers`, which comes before anything is acknowledged."""
        self._announcements.append(event)

    def _tell_viewers(self) -> None:
        """In one round trip, in order: a hundred sessions are acknowledged in one moment."""
        if not self._announcements:
            return
        with self._broker.pipeline(transaction=False) as pipeline:
            for event in self._announcements:
                pipeline.publish(captions_channel(event.session), encode(event))
            pipeline.execute()
        self._announcements.clear()

    # Audio ------------------------------------------------------------------------------------

    def _read_audio(self) -> None:
        # First what a database that was away left: nothing behind a mark is acknowledged before it.
        self._store_marks()
        if not self._tracks:
            return
        wanted: Any = {audio_key(key): track.last_id for key, track in self._tracks.items()}
        answer: Any = self._audio.xread(wanted, count=BATCH)
        for key, entries in answer or []:
            track = self._tracks[key.decode().split(":")[1]]
            for entry_id, fields in entries:
                try:
                    entry = AudioEntry.from_fields(fields)
                except (KeyError, ValueError):
                    log.error("audio_entry_unusable", session=track.session_id)  # noqa: TRY400
                    track.last_id = entry_id
                    continue
                mark = track.accept(entry_id, entry)
                if mark is not None:
                    self._marks.append((track.session_id, mark))
            self._store_marks()
            if track.is_ended and track.session_id not in self._ended_at_s:
                self._ended_at_s[track.session_id] = time.monotonic()
                self._move_to_ending(track.session_id)

    def _store_marks(self) -> None:
        while self._marks:
            self._store_mark(*self._marks[0])
            self._marks.popleft()

    def _store_mark(self, session_id: str, mark: TrackMark) -> None:
        stored = live_sessions.record_mark(
            session_id=session_id,
            kind=mark.kind,
            start_ms=mark.start_ms,
            end_ms=mark.end_ms,
            wall_at=datetime.fromtimestamp(mark.wall_ms / 1000, UTC),
        )
        if stored is not None:
            self._announce(live_sessions.mark_event(stored))

    def _move_to_ending(self, session_id: str) -> None:
        if live_sessions.move_live_session(session_id, LiveState.ENDING):
            self._announce(live_sessions.state_event(session_id, LiveState.ENDING))

    def _acknowledge(self) -> None:
        """Start syncs that are due, and tell what those that are done have put on disk."""
        done = [name for name, future in self._syncs.items() if future.done()]
        futures = {name: self._syncs.pop(name) for name in done}
        synced = {name: future.result() for name, future in futures.items()}
        if synced:
            with self._broker.pipeline(transaction=False) as pipeline:
                for session_id, sample in synced.items():
                    pipeline.hset(session_key(session_id), "acknowledged_sample", sample)
                pipeline.execute()
        for session_id, sample in synced.items():
            self._tracks[session_id].synced_sample = sample
            self._announce(ViewerEvent(type="ack", session=session_id, sample=sample))
            self._refining.note_sync(session_id)
        for _ in range(min(self._syncs_a_step, len(self._due_syncs))):
            self._begin_sync(self._due_syncs.popleft())
        for session_id in self._ended_at_s:
            self._begin_sync(session_id)

    def _begin_sync(self, session_id: str) -> None:
        track = self._tracks.get(session_id)
        if track is None:
            return
        if track.written_sample > track.synced_sample and session_id not in self._syncs:
            self._syncs[session_id] = self._sync_pool.submit(track.sync)

    # Once a second ----------------------------------------------------------------------------

    def tick(self) -> None:
        """Sessions that came, went or must end; syncs, trimming, heads."""
        sessions = {
            str(row.id): row for row in LiveSession.objects.filter(state__in=live_sessions.ACTIVE)
        }
        for session_id in [known for known in self._tracks if known not in sessions]:
            self._drop(session_id)
        for session_id, session in sessions.items():
            if session_id not in self._tracks:
                self._follow(session)
            self._guide(session, self._tracks[session_id])
        # What a busy second has left over goes first.
        self._due_syncs.extend(sessions.keys() - set(self._due_syncs))
        self._syncs_a_step = -(-len(self._due_syncs) // SYNC_STEPS)
        self._trim()
        self._refill_lost()
        self._ticks += 1
        is_slow_tick = self._ticks % SLOW_TICKS == 0
        if is_slow_tick:
            self._note_clocks(list(sessions.values()))
            self._end_unstarted()
        if is_slow_tick or self._extra_heads:
            self._extra_heads = max(0, self._extra_heads - 1)
            self._announce_heads(list(sessions.values()))
        self._refining.ask(again=is_slow_tick)
        self._tell_viewers()

    def _follow(self, session: LiveSession) -> None:
        acknowledged: Any = self._broker.hget(session_key(str(session.id)), "acknowledged_sample")
        self._tracks[str(session.id)] = AudioTrack(
            session, max(int(acknowledged or 0), session.samples)
        )
        if session.ended_at is not None:
            self._heard.add(str(session.id))

    def _guide(self, session: LiveSession, track: AudioTrack) -> None:
        """Lead a session to its end: the speaker's, its owner's, or that of our patience."""
        session_id = track.session_id
        if session.state != LiveState.ENDING:
            if track.is_ended:
                self._move_to_ending(session_id)
            elif self._is_abandoned(session, track):
                live_sessions.end_live_session(session=session)
        elif not track.is_ended:
            end = AudioEntry(AudioEntryKind.END, track.written_sample)
            self._audio.xadd(audio_key(session_id), end.as_fields())
            self._announce(live_sessions.state_event(session_id, LiveState.ENDING))
        elif session_id not in self._heard:
            waited_s = time.monotonic() - self._ended_at_s[session_id]
            is_heard_by_none = not self._broker.sismember(SESSIONS_KEY, session_id)
            if is_heard_by_none or waited_s > HEARD_TIMEOUT_S:
                live_sessions.record_heard(session_id=session_id)
                self._heard.add(session_id)

    def _is_abandoned(self, session: LiveSession, track: AudioTrack) -> bool:
        """Nobody has spoken for the time of grace, and no page holds the session."""
        last_at = session.last_packet_at or session.created_at
        if track.last_at_ms:
            last_at = max(last_at, datetime.fromtimestamp(track.last_at_ms / 1000, UTC))
        grace = timedelta(minutes=site_settings().session_return_minutes)
        if last_at > timezone.now() - grace:
            return False
        return not self._broker.exists(capture_key(track.session_id))

    def _trim(self) -> None:
        tracks = list(self._tracks.values())
        with self._broker.pipeline(transaction=False) as asked:
            for track in tracks:
                asked.hget(session_key(track.session_id), "resume_sample")
            answers = asked.execute() if tracks else []
        with self._audio.pipeline(transaction=False) as trims:
            for track, resume in zip(tracks, answers, strict=True):
                entry_id = track.trim_id(int(resume or 0))
                if entry_id is not None:
                    trims.xtrim(audio_key(track.session_id), minid=entry_id, approximate=False)
            if len(trims):
                trims.execute()

    def _refill_lost(self) -> None:
        """When the audio server is another than before, its streams may be gone. An engine that
        misses audio in a stream waits until this was done for it."""
        server: Any = self._audio.info("server")
        if server["run_id"] != self._audio_run:
            self._whole.clear()
            self._audio_run = server["run_id"]
        for session_id in self._tracks.keys() - self._whole:
            resume: Any = self._broker.hget(session_key(session_id), "resume_sample")
            if refill_audio(self._audio, self._tracks[session_id], int(resume or 0)):
                log.warning("audio_stream_refilled", session=session_id)
            self._whole.add(session_id)

    def _note_clocks(self, sessions: list[LiveSession]) -> None:
        with transaction.atomic():
            for session in sessions:
                if session.samples != self._tracks[str(session.id)].synced_sample:
                    self._note_clock(str(session.id))

    def _announce_heads(self, sessions: list[LiveSession]) -> None:
        """What each session's last change is: who has not seen it asks for it."""
        for session in sessions:
            self._announce(ViewerEvent(type="head", session=str(session.id), seq=session.last_seq))

    def _note_clock(self, session_id: str) -> None:
        track = self._tracks.get(session_id)
        if track is not None:
            live_sessions.record_clock(
                session_id=session_id, samples=track.synced_sample, clock=track.clock
            )

    def _end_unstarted(self) -> None:
        oldest = timezone.now() - UNSTARTED_LIFE
        for session in LiveSession.objects.filter(state=LiveState.CREATED, created_at__lt=oldest):
            live_sessions.end_live_session(session=session)
            self._drop(str(session.id))

    # The end of a session ---------------------------------------------------------------------

    def _finish(self) -> None:
        """Audio whole on disk and everything heard: make the files, then the recording."""
        for session_id in self._ended_at_s:
            track = self._tracks[session_id]
            if session_id in self._heard and track.synced_sample == track.written_sample:
                self._finisher.begin(session_id, track.path)
        for session_id, audio in self._finisher.take_done():
            self._note_clock(session_id)
            session = live_sessions.finish_live_session(session_id=session_id, audio=audio)
            self._drop(session_id)
            if session is not None:
                self._announce_closed(session)
            else:  # deleted while its file was made
                storage.remove_folder(Recording(id=session_id).folder)

    def _announce_closed(self, session: LiveSession) -> None:
        closed = LiveMark.objects.filter(session=session, kind=LiveMarkKind.CLOSED).first()
        if closed is not None:
            recording = str(session.recording_id) if session.recording_id else None
            self._announce(replace(live_sessions.mark_event(closed), recording=recording))

    def _tidy_ended(self) -> None:
        """What a recorder left that was killed between the recording and the removal of its PCM."""
        folders = storage.folders_of_rows(Path(settings.MEDIA_ROOT) / "live")
        for session in LiveSession.objects.filter(
            id__in=[folder.name for folder in folders], state=LiveState.ENDED
        ):
            self._drop(str(session.id))
            self._announce_closed(session)

    def _drop_if_over(self, session_id: str) -> None:
        """An engine had taken a session up once more that had ended, or was deleted."""
        open_states = (LiveState.CREATED, *live_sessions.ACTIVE)
        if not LiveSession.objects.filter(id=session_id, state__in=open_states).exists():
            self._drop(session_id)

    def _drop(self, session_id: str) -> None:
        """Nothing more is to be done for a session: remove its PCM and its keys."""
        self._forget(session_id)
        self._broker.srem(SESSIONS_KEY, session_id)
        self._broker.delete(session_key(session_id), capture_key(session_id))
        self._audio.delete(audio_key(session_id), writer_key(session_id), whole_key(session_id))
        storage.remove_folder(LiveSession(id=session_id).folder)

    def _forget(self, session_id: str) -> None:
        sync = self._syncs.pop(session_id, None)
        if sync is not None:
            with contextlib.suppress(OSError):  # what it did not put on disk is not acknowledged
                sync.result()
        track = self._tracks.pop(session_id, None)
        if track is not None:
            track.close()
        self._ended_at_s.pop(session_id, None)
        self._heard.discard(session_id)
        self._whole.discard(session_id)
        self._refining.forget(session_id)
        self._finisher.forget(session_id)
