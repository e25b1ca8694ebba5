"""The recorder: exactly once, acknowledged means on disk, and the end of a session."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from django.db import OperationalError
from django.utils import timezone
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from asr_engine.protocol import (
    EVENTS_KEY,
    RECORDER_LEADER_KEY,
    SESSIONS_KEY,
    AudioEntry,
    AudioEntryKind,
    EngineEvent,
    EngineEventKind,
    ViewerEvent,
    audio_key,
    captions_channel,
    decode_viewer_event,
    encode,
    session_key,
    whole_key,
)
from tests.fakes.live import final, make_session
from transcription.models import (
    Job,
    LiveMark,
    LiveMarkKind,
    LiveSession,
    LiveState,
    LiveUtterance,
    Recording,
)
from transcription.queue import Task
from transcription.runners import record_live
from transcription.runners.record_live import Recorder
from transcription.runners.recorder import refining
from transcription.services import live_sessions
from transcription.services.live_refinement import ASKED_KEY
from webapp.accounts.models import User
from webapp.config import site_settings

pytestmark = pytest.mark.django_db(transaction=True)

Sent = list[tuple[str, ...]]


@pytest.fixture
def broker() -> Iterator[Redis]:
    with Redis.from_url(site_settings().broker_url) as client:
        client.flushdb()
        yield client


@pytest.fixture
def audio() -> Iterator[Redis]:
    with Redis.from_url(site_settings().audio_url) as client:
        client.flushdb()
        yield client


@pytest.fixture
def recorder(broker: Redis, audio: Redis) -> Iterator[Recorder]:
    recorder = Recorder(broker, audio)
    yield recorder
    recorder.close()


@pytest.fixture
def session(alice: User) -> LiveSession:
    return live_sessions.start_live_session(session=make_session(alice))


def speech(samples: int, seed: int = 0) -> bytes:
    noise = np.random.default_rng(seed).integers(-9000, 9000, samples, dtype=np.int16)
    return noise.astype("<i2").tobytes()


def put(
    audio: Redis, session: LiveSession, kind: AudioEntryKind, at: int, pcm: bytes = b""
) -> None:
    audio.xadd(audio_key(str(session.id)), dict(AudioEntry(kind, at, pcm).as_fields()))


def tell(broker: Redis, event: EngineEvent) -> None:
    broker.xadd(EVENTS_KEY, {"e": encode(event)})


def ended(session: LiveSession) -> EngineEvent:
    return EngineEvent(EngineEventKind.ENDED, str(session.id), epoch=1)


def run_until(recorder: Recorder, is_done: Any) -> None:
    for _ in range(200):
        recorder.tick()
        recorder.step()
        if is_done():
            return
    pytest.fail("the recorder did not get there")


def state_of(session: LiveSession) -> str:
    return LiveSession.objects.values_list("state", flat=True).get(id=session.id)


class Viewer:
    """Hears what is announced for a session."""

    def __init__(self, broker: Redis, session: LiveSession) -> None:
        self._pubsub = broker.pubsub()
        self._pubsub.subscribe(captions_channel(str(session.id)))
        self._pubsub.get_message(timeout=5)

    def heard(self, kind: str) -> list[ViewerEvent]:
        events = []
        self._pubsub.ping()  # its answer comes behind everything that was published before
        while (message := self._pubsub.get_message(timeout=30))["type"] != "pong":
            event = decode_viewer_event(message["data"])
            if event.type == kind:
                events.append(event)
        return events

    def close(self) -> None:
        self._pubsub.close()


@pytest.fixture
def viewer(broker: Redis, session: LiveSession) -> Iterator[Viewer]:
    viewer = Viewer(broker, session)
    yield viewer
    viewer.close()


def test_final_is_stored_once_and_announced_after(
    recorder: Recorder, broker: Redis, session: LiveSession, viewer: Viewer
) -> None:
    for text in ("hello", "hello", "world"):
        tell(broker, final(session, 0 if text == "hello" else 1, text))
    run_until(recorder, lambda: broker.xlen(EVENTS_KEY) == 0)
    stored = LiveUtterance.objects.filter(session=session)
    assert [(row.utterance, row.seq, row.text) for row in stored] == [
        (0, 1, "hello"),
        (1, 2, "world"),
    ]
    assert [event.seq for event in viewer.heard("final")] == [1, 1, 2]


def test_event_of_a_dead_recorder_is_taken_up(
    recorder: Recorder, broker: Redis, session: LiveSession
) -> None:
    """Delivered, stored, killed before the acknowledgement: it is announced again, stored once."""
    recorder.step()
    tell(broker, final(session, 0, "hello"))
    broker.xreadgroup("recorder", "recorder", {EVENTS_KEY: ">"})
    live_sessions.record_final(event=final(session, 0, "hello"))
    recorder.close()
    successor = Recorder(recorder._broker, recorder._audio)
    run_until(successor, lambda: broker.xlen(EVENTS_KEY) == 0)
    successor.close()
    assert LiveUtterance.objects.filter(session=session).count() == 1
    assert LiveSession.objects.get(id=session.id).last_seq == 1


def test_unusable_event_does_not_hold_up_the_others(
    recorder: Recorder, broker: Redis, session: LiveSession
) -> None:
    broker.xadd(EVENTS_KEY, {"e": "{"})
    broker.xadd(EVENTS_KEY, {"x": "y"})
    tell(broker, EngineEvent(EngineEventKind.FINAL, "no-uuid", 1, utterance=0))
    tell(broker, EngineEvent(EngineEventKind.FINAL, str(uuid.uuid4()), 1, utterance=0))
    tell(broker, EngineEvent(EngineEventKind.FINAL, str(session.id), 1))
    tell(broker, final(session, 0, "hello"))
    run_until(recorder, lambda: broker.xlen(EVENTS_KEY) == 0)
    assert LiveUtterance.objects.filter(session=session).count() == 1


def test_readers_are_told_of_audio_that_the_model_could_not_hear(
    recorder: Recorder, broker: Redis, session: LiveSession, viewer: Viewer
) -> None:
    gap = EngineEvent(EngineEventKind.GAP, str(session.id), 1, start_ms=1000, end_ms=2500)
    tell(broker, gap)
    tell(broker, gap)
    run_until(recorder, lambda: broker.xlen(EVENTS_KEY) == 0)
    mark = LiveMark.objects.get(session=session)
    assert (mark.kind, mark.start_ms, mark.end_ms) == (LiveMarkKind.GAP, 1000, 2500)
    assert {event.seq for event in viewer.heard("gap")} == {mark.seq}


def test_acknowledged_audio_is_on_disk(
    recorder: Recorder, broker: Redis, audio: Redis, session: LiveSession, viewer: Viewer
) -> None:
    pcm = speech(16000)
    for start in range(0, 16000, 3200):
        put(audio, session, AudioEntryKind.AUDIO, start, pcm[2 * start : 2 * start + 6400])
    run_until(
        recorder,
        lambda: broker.hget(session_key(str(session.id)), "acknowledged_sample") == b"16000",
    )
    assert session.pcm_path.read_bytes() == pcm
    assert viewer.heard("ack")[-1].sample == 16000


def test_replayed_audio_does_no_harm_and_a_gap_is_zeros_and_marked(
    recorder: Recorder, audio: Redis, session: LiveSession, viewer: Viewer
) -> None:
    pcm = speech(8000)
    put(audio, session, AudioEntryKind.AUDIO, 0, pcm)
    put(audio, session, AudioEntryKind.AUDIO, 0, pcm)
    put(audio, session, AudioEntryKind.AUDIO, 4000, pcm[8000:] + speech(800, 1))
    put(audio, session, AudioEntryKind.AUDIO, 16800, pcm)
    run_until(recorder, lambda: LiveMark.objects.filter(session=session).exists())
    assert session.pcm_path.read_bytes() == pcm + speech(800, 1) + bytes(16000) + pcm
    mark = LiveMark.objects.get(session=session)
    assert (mark.kind, mark.start_ms, mark.end_ms) == (LiveMarkKind.GAP, 550, 1050)
    assert [event.seq for event in viewer.heard("gap")] == [mark.seq]


def test_unusable_audio_does_not_hold_up_what_follows(
    recorder: Recorder, audio: Redis, session: LiveSession
) -> None:
    key, pcm = audio_key(str(session.id)), speech(16000)
    for fields in ({"k": "smell", "s": 0}, {"k": "audio"}, {"k": "audio", "s": 0, "d": b"odd"}):
        audio.xadd(key, dict(fields))  # type: ignore[arg-type]
    put(audio, session, AudioEntryKind.AUDIO, 0, pcm)
    run_until(recorder, lambda: session.pcm_path.exists() and session.pcm_path.stat().st_size > 0)
    assert session.pcm_path.read_bytes() == pcm


def test_mark_that_the_database_could_not_take_is_stored_before_its_audio_is_acknowledged(
    recorder: Recorder,
    broker: Redis,
    audio: Redis,
    session: LiveSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put(audio, session, AudioEntryKind.AUDIO, 16000, speech(16000))
    hash_key = session_key(str(session.id))

    def away(**_: object) -> None:
        raise OperationalError

    with monkeypatch.context() as patch:
        patch.setattr(live_sessions, "record_mark", away)
        for _ in range(3):
            with pytest.raises(OperationalError):
                recorder.step()
            recorder.tick()
        assert not broker.hexists(hash_key, "acknowledged_sample")
    run_until(recorder, lambda: broker.hget(hash_key, "acknowledged_sample") == b"32000")
    mark = LiveMark.objects.get(session=session)
    assert (mark.kind, mark.start_ms, mark.end_ms) == (LiveMarkKind.GAP, 0, 1000)


def test_pause_is_marked_with_its_time_of_day(
    recorder: Recorder, audio: Redis, session: LiveSession
) -> None:
    put(audio, session, AudioEntryKind.AUDIO, 0, speech(16000))
    put(audio, session, AudioEntryKind.PAUSED, 16000)
    run_until(recorder, lambda: LiveMark.objects.filter(session=session).exists())
    mark = LiveMark.objects.get(session=session)
    assert (mark.kind, mark.start_ms, mark.end_ms) == (LiveMarkKind.PAUSED, 1000, 1000)
    assert abs(mark.wall_at - timezone.now()) < timedelta(minutes=1)


def test_only_what_is_on_disk_and_final_is_trimmed(
    recorder: Recorder, broker: Redis, audio: Redis, session: LiveSession
) -> None:
    key = audio_key(str(session.id))
    for second in range(4):
        put(audio, session, AudioEntryKind.AUDIO, second * 16000, speech(16000))
    hash_key = session_key(str(session.id))
    run_until(recorder, lambda: broker.hget(hash_key, "acknowledged_sample") == b"64000")
    recorder.tick()
    assert audio.xlen(key) == 4
    broker.hset(hash_key, "resume_sample", 40000)
    recorder.tick()
    assert audio.xlen(key) == 2


def test_ended_session_becomes_a_recording_with_its_words(
    recorder: Recorder, broker: Redis, audio: Redis, session: LiveSession, viewer: Viewer
) -> None:
    pcm = speech(50001)
    put(audio, session, AudioEntryKind.AUDIO, 0, pcm[:60000])
    put(audio, session, AudioEntryKind.AUDIO, 30000, pcm[60000:])
    put(audio, session, AudioEntryKind.END, 50001)
    broker.sadd(SESSIONS_KEY, str(session.id))
    tell(broker, final(session, 0, "hello"))
    tell(broker, ended(session))
    run_until(recorder, lambda: state_of(session) == LiveState.ENDED)
    recording = Recording.objects.get(live_session=session)
    samples, rate = soundfile.read(recording.source_path, dtype="int16")
    assert (samples.astype("<i2").tobytes(), rate) == (pcm, 16000)
    assert [segment.text for segment in recording.current_revision.segments.all()] == ["hello"]  # type: ignore[union-attr]
    assert Job.objects.filter(recording=recording).count() == 1
    assert (recording.duration_ms, recording.media_type) == (3125, "audio/flac")
    assert recording.player_path.exists()
    closed = viewer.heard("closed")
    assert [event.recording for event in closed] == [str(recording.id)]
    assert not session.folder.exists()
    assert not audio.exists(audio_key(str(session.id)))
    assert not broker.exists(session_key(str(session.id)))
    assert not broker.sismember(SESSIONS_KEY, str(session.id))


def test_session_is_not_finished_before_the_engine_said_everything(
    recorder: Recorder, broker: Redis, audio: Redis, session: LiveSession
) -> None:
    broker.sadd(SESSIONS_KEY, str(session.id))
    put(audio, session, AudioEntryKind.AUDIO, 0, speech(16000))
    put(audio, session, AudioEntryKind.END, 16000)
    run_until(recorder, lambda: state_of(session) == LiveState.ENDING)
    for _ in range(5):
        recorder.tick()
        recorder.step()
    assert state_of(session) == LiveState.ENDING
    tell(broker, final(session, 0, "last"))
    tell(broker, ended(session))
    run_until(recorder, lambda: state_of(session) == LiveState.ENDED)
    assert LiveUtterance.objects.get(session=session).text == "last"


def test_ended_session_without_an_engine_is_finished_all_the_same(
    recorder: Recorder,
    broker: Redis,
    audio: Redis,
    session: LiveSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(record_live, "HEARD_TIMEOUT_S", -1)
    broker.sadd(SESSIONS_KEY, str(session.id))
    put(audio, session, AudioEntryKind.AUDIO, 0, speech(16000))
    put(audio, session, AudioEntryKind.END, 16000)
    run_until(recorder, lambda: state_of(session) == LiveState.ENDED)
    assert Recording.objects.get(live_session=session).duration_ms == 1000


def test_session_without_audio_leaves_no_recording(
    recorder: Recorder, session: LiveSession, viewer: Viewer
) -> None:
    live_sessions.end_live_session(session=session)
    run_until(recorder, lambda: state_of(session) == LiveState.ENDED)
    assert not Recording.objects.exists()
    assert [event.recording for event in viewer.heard("closed")] == [None]


def test_waiting_session_is_ended_after_the_time_of_grace(
    recorder: Recorder, broker: Redis, session: LiveSession
) -> None:
    hash_key = session_key(str(session.id))
    broker.hset(hash_key, "epoch", 2)
    waiting = EngineEvent(EngineEventKind.WAITING, str(session.id), epoch=2)
    tell(broker, waiting)
    run_until(recorder, lambda: state_of(session) == LiveState.WAITING)
    recorder.tick()
    assert state_of(session) == LiveState.WAITING
    long_ago = timezone.now() - timedelta(minutes=11)
    live_sessions.note_packet(session_id=session.id, at=long_ago)
    run_until(recorder, lambda: state_of(session) == LiveState.ENDED)


def test_paused_session_with_an_open_page_is_not_ended(
    recorder: Recorder, broker: Redis, session: LiveSession
) -> None:
    broker.hset(f"live:{session.id}:capture", "connection", "page")
    live_sessions.note_packet(session_id=session.id, at=timezone.now() - timedelta(hours=2))
    for _ in range(3):
        recorder.tick()
        recorder.step()
    assert state_of(session) == LiveState.LIVE


def test_readers_of_a_paused_session_are_not_told_that_it_waits(
    recorder: Recorder, broker: Redis, session: LiveSession, viewer: Viewer
) -> None:
    broker.hset(session_key(str(session.id)), mapping={"epoch": 2, "is_paused": 1})
    tell(broker, EngineEvent(EngineEventKind.WAITING, str(session.id), epoch=2))
    run_until(recorder, lambda: state_of(session) == LiveState.WAITING)
    assert viewer.heard("state") == []


def test_waiting_event_of_an_older_claim_is_ignored(
    recorder: Recorder, broker: Redis, session: LiveSession
) -> None:
    broker.hset(session_key(str(session.id)), "epoch", 3)
    tell(broker, EngineEvent(EngineEventKind.WAITING, str(session.id), epoch=2))
    run_until(recorder, lambda: broker.xlen(EVENTS_KEY) == 0)
    assert state_of(session) == LiveState.LIVE


@pytest.mark.parametrize("kind", [EngineEventKind.WAITING, EngineEventKind.ENDED])
@pytest.mark.parametrize("is_deleted", [False, True])
def test_nothing_is_left_of_a_session_that_an_engine_took_up_after_its_end(
    recorder: Recorder,
    broker: Redis,
    session: LiveSession,
    kind: EngineEventKind,
    *,
    is_deleted: bool,
) -> None:
    sessions = LiveSession.objects.filter(id=session.id)
    if is_deleted:
        sessions.delete()
    else:
        sessions.update(state=LiveState.ENDED)
    broker.hset(session_key(str(session.id)), mapping={"epoch": 1, "owner": ""})
    tell(broker, EngineEvent(kind, str(session.id), epoch=1))
    run_until(recorder, lambda: broker.xlen(EVENTS_KEY) == 0)
    assert not broker.keys("live:*-*")
    assert not recorder._heard


def test_nothing_is_left_of_a_session_that_never_started(
    recorder: Recorder, broker: Redis, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    unstarted = make_session(alice)
    broker.hset(session_key(str(unstarted.id)), mapping={"epoch": 1, "owner": ""})
    tell(broker, EngineEvent(EngineEventKind.WAITING, str(unstarted.id), epoch=1))
    run_until(recorder, lambda: broker.xlen(EVENTS_KEY) == 0)
    assert broker.exists(session_key(str(unstarted.id)))  # its page may come yet
    monkeypatch.setattr(record_live, "UNSTARTED_LIFE", timedelta(0))
    run_until(recorder, lambda: state_of(unstarted) == LiveState.ENDED)
    assert not broker.exists(session_key(str(unstarted.id)))


def test_folder_of_no_session_stops_no_recorder(
    recorder: Recorder, media_dir: Path, session: LiveSession
) -> None:
    (media_dir / "live" / "lost+found").mkdir(parents=True)
    assert recorder.step()


def test_lost_audio_stream_is_refilled_from_disk(
    recorder: Recorder, broker: Redis, audio: Redis, session: LiveSession
) -> None:
    key, hash_key = audio_key(str(session.id)), session_key(str(session.id))
    pcm = speech(48000)
    put(audio, session, AudioEntryKind.AUDIO, 0, pcm)
    run_until(recorder, lambda: broker.hget(hash_key, "acknowledged_sample") == b"48000")
    broker.hset(hash_key, "resume_sample", 20000)
    audio.flushdb()  # as an audio server that was killed
    put(audio, session, AudioEntryKind.AUDIO, 48000, speech(1600))
    recorder._audio_run = "another server"
    recorder.tick()
    entries = [AudioEntry.from_fields(fields) for _, fields in audio.xrange(key)]
    assert [entry.first_sample for entry in entries] == [20000, 36000, 48000]
    assert b"".join(entry.payload for entry in entries) == pcm[40000:] + speech(1600)
    assert audio.exists(whole_key(str(session.id)))


def test_a_stream_is_called_whole_only_on_the_server_that_was_looked_at(
    recorder: Recorder, audio: Redis, session: LiveSession
) -> None:
    recorder.step()
    assert audio.exists(whole_key(str(session.id)))
    audio.flushdb()
    recorder.tick()
    assert not audio.exists(whole_key(str(session.id)))
    recorder._audio_run = "another server"
    recorder.tick()
    assert audio.exists(whole_key(str(session.id)))


def test_an_end_that_was_lost_with_its_stream_is_given_back(
    recorder: Recorder, broker: Redis, audio: Redis, session: LiveSession
) -> None:
    """An engine that was down when the speaker stopped must hear where the session ends."""
    broker.sadd(SESSIONS_KEY, str(session.id))
    put(audio, session, AudioEntryKind.AUDIO, 0, speech(16000))
    put(audio, session, AudioEntryKind.END, 16000)
    run_until(recorder, lambda: state_of(session) == LiveState.ENDING)
    audio.flushdb()
    recorder._audio_run = "another server"
    recorder.tick()
    entries = [
        AudioEntry.from_fields(fields) for _, fields in audio.xrange(audio_key(str(session.id)))
    ]
    assert [(entry.kind, entry.end_sample) for entry in entries] == [
        (AudioEntryKind.AUDIO, 16000),
        (AudioEntryKind.END, 16000),
    ]


def test_heads_come_at_once_after_a_server_was_away(
    recorder: Recorder, session: LiveSession, viewer: Viewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was announced meanwhile reached nobody; who has missed something learns it now."""
    monkeypatch.setattr(record_live, "RETRY_S", 0.0)
    for _ in range(2 * record_live.SLOW_TICKS):
        recorder.tick()
    viewer.heard("head")
    steps = iter([RedisConnectionError, None])
    work = recorder.step

    def step() -> bool:
        if error := next(steps):
            raise error
        recorder._next_tick_s = 0
        return work()

    monkeypatch.setattr(recorder, "step", step)
    stops = iter([False, False, True])
    monkeypatch.setattr(recorder, "close", lambda: None)
    recorder.run(lambda: next(stops))
    monkeypatch.undo()
    assert [head.seq for head in viewer.heard("head")] == [session.last_seq]


def test_standby_takes_over_when_the_leader_is_gone(
    recorder: Recorder, broker: Redis, audio: Redis, session: LiveSession
) -> None:
    standby = Recorder(broker, audio)
    assert recorder.step()
    assert not standby.step()
    broker.delete(RECORDER_LEADER_KEY)
    standby._next_tick_s = 0
    assert standby.step()
    tell(broker, final(session, 0, "hello"))
    run_until(standby, lambda: broker.xlen(EVENTS_KEY) == 0)
    standby.close()
    assert LiveUtterance.objects.filter(session=session).count() == 1


def test_finish_that_was_killed_after_the_recording_is_tidied(
    recorder: Recorder, broker: Redis, audio: Redis, session: LiveSession, viewer: Viewer
) -> None:
    put(audio, session, AudioEntryKind.AUDIO, 0, speech(16000))
    put(audio, session, AudioEntryKind.END, 16000)
    recorder._drop = recorder._forget  # type: ignore[method-assign]
    run_until(recorder, lambda: state_of(session) == LiveState.ENDED)
    assert session.pcm_path.exists()
    recorder.close()
    viewer.heard("closed")
    successor = Recorder(broker, audio)
    successor.step()
    successor.close()
    assert not session.folder.exists()
    assert len(viewer.heard("closed")) == 1
    assert Recording.objects.count() == 1


def refine_requests(sent: list[tuple[str, ...]]) -> int:
    return sent.count((Task.REFINE_LIVE.value,))


def test_a_worker_is_woken_once_an_utterance_and_its_audio_are_there(
    recorder: Recorder, broker: Redis, audio: Redis, session: LiveSession, sent: Sent
) -> None:
    put(audio, session, AudioEntryKind.AUDIO, 0, speech(16000))
    run_until(recorder, lambda: broker.hget(session_key(str(session.id)), "acknowledged_sample"))
    assert refine_requests(sent) == 0
    tell(broker, final(session, 0, "hello"))
    put(audio, session, AudioEntryKind.AUDIO, 16000, speech(16000))
    run_until(recorder, lambda: refine_requests(sent))


def test_a_worker_is_woken_again_while_an_utterance_waits(
    recorder: Recorder, broker: Redis, session: LiveSession, sent: Sent
) -> None:
    """A message may be lost; but of a worker that has not looked yet nothing more is asked."""
    tell(broker, final(session, 0, "hello"))
    run_until(recorder, lambda: refine_requests(sent))
    for _ in range(2 * record_live.SLOW_TICKS):
        recorder.tick()
    assert refine_requests(sent) == 1
    broker.delete(ASKED_KEY)  # it has looked, or a minute has gone
    run_until(recorder, lambda: refine_requests(sent) == 2)
    broker.delete(ASKED_KEY)
    utterance = LiveUtterance.objects.get(session=session)
    live_sessions.record_refined(utterance_id=utterance.id, text="", words=[])
    for _ in range(2 * record_live.SLOW_TICKS):
        recorder.tick()
    assert refine_requests(sent) == 2


def test_nobody_is_woken_where_live_captions_are_not_refined(
    recorder: Recorder,
    broker: Redis,
    session: LiveSession,
    sent: Sent,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = site_settings().model_copy(update={"live_refine": "off"})
    monkeypatch.setattr(refining, "site_settings", lambda: site)
    tell(broker, final(session, 0, "hello"))
    run_until(recorder, LiveUtterance.objects.exists)
    for _ in range(2 * record_live.SLOW_TICKS):
        recorder.tick()
    assert refine_requests(sent) == 0
