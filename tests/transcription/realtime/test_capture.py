"""The capture socket: who may speak, who holds the session, and which audio is taken."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError
from django.utils import timezone
from redis.exceptions import ConnectionError as RedisConnectionError

from asr_engine import client, protocol
from asr_engine.protocol import AudioEntry, AudioEntryKind, ViewerEvent
from tests.fakes import live
from tests.fakes.live import (
    UNKNOWN_LANGUAGE,
    Page,
    engine_by_hand,
    hello,
    log_in,
    make_session,
    publish,
    servers,
)
from transcription.feeds import links
from transcription.feeds.publisher import AudioPublisher, Lane
from transcription.models import LiveSession, LiveState, Visibility
from transcription.realtime import allowance, capture, socket
from transcription.services import live_sessions
from webapp.accounts.models import User

pytestmark = pytest.mark.django_db(transaction=True)

PCM = bytes(range(250)) * 16  # 2000 samples


@pytest.fixture
def session(alice: User) -> LiveSession:
    return make_session(alice, visibility=Visibility.ORGANISATION)


async def connected(session: LiveSession, person: User) -> Page:
    browser = await sync_to_async(log_in)(person)
    page = Page(f"/ws/v1/live/{session.id}/capture", browser)
    assert await page.connect()
    return page


async def capturing(session: LiveSession, person: User, **members: Any) -> Page:
    page = await connected(session, person)
    await page.say(**hello(**members))
    page.ready = await page.hear("ready")
    return page


async def entries_of(session: LiveSession, count: int) -> list[AudioEntry]:
    """The session's audio stream, once it holds `count` entries."""
    async with servers() as (_, audio):
        key, last_id, found = protocol.audio_key(str(session.id)), "0", []
        while len(found) < count:
            answer = await audio.xread({key: last_id}, block=20000)
            assert answer, f"only {len(found)} entries came"
            for entry_id, fields in answer[0][1]:
                last_id = entry_id
                found.append(AudioEntry.from_fields(fields))
    return found


async def state_of(session: LiveSession) -> str:
    await session.arefresh_from_db()
    return session.state


async def test_first_hello_makes_the_session_live(session: LiveSession, alice: User) -> None:
    async with engine_by_hand() as commands:
        page = await capturing(session, alice)
        ready = page.ready
        assert (ready["packet_ms"], ready["mode_ms"]) == (160, 160)
        assert (ready["sample"], ready["next_sample"], ready["state"]) == (0, 0, "live")
        assert [(command.kind, command.language) for command in commands] == [("open", "en")]
        assert await state_of(session) == LiveState.LIVE
        assert session.started_at is not None
        await page.leave()


async def test_packets_reach_the_audio_server_in_order(session: LiveSession, alice: User) -> None:
    async with engine_by_hand():
        page = await capturing(session, alice)
        for number in range(5):
            await page.speak(number * 2000, PCM)
        await page.say(type="pause", sample=10000)
        entries = await entries_of(session, 2)
        while entries[-1].kind is not AudioEntryKind.PAUSED:
            entries = await entries_of(session, len(entries) + 1)
        assert b"".join(entry.payload for entry in entries) == PCM * 5
        position = 0
        for entry in entries:
            assert entry.first_sample == position
            position = entry.end_sample
        await page.leave()


async def test_samples_sent_twice_are_cut(session: LiveSession, alice: User) -> None:
    async with engine_by_hand():
        page = await capturing(session, alice)
        await page.speak(0, PCM)
        await page.speak(0, PCM)
        await page.speak(1000, PCM)
        await page.say(type="pause", sample=3000)
        entries = await entries_of(session, 2)
        while entries[-1].kind is not AudioEntryKind.PAUSED:
            entries = await entries_of(session, len(entries) + 1)
        assert b"".join(entry.payload for entry in entries) == PCM + PCM[2000:]
        await page.leave()


async def test_speaker_hears_acknowledgements_and_captions(
    session: LiveSession, alice: User
) -> None:
    async with engine_by_hand():
        page = await capturing(session, alice)
        await publish(ViewerEvent("ack", str(session.id), sample=1600))
        assert (await page.hear("ack"))["sample"] == 1600
        await publish(ViewerEvent("partial", str(session.id), utterance=0, text="hel", end_ms=9))
        assert (await page.hear("partial"))["text"] == "hel"
        await page.leave()


@pytest.mark.parametrize(
    ("members", "word"),
    [
        ({"version": 2}, "version"),
        ({"sample_rate": 48000}, "16000"),
        ({"encoding": "opus"}, "pcm16"),
        ({"capture_id": "a b"}, "capture_id"),
        ({"mode_ms": -1}, "mode_ms"),
        ({"language": 7}, "language"),
    ],
)
async def test_bad_hello_is_refused_with_a_sentence(
    session: LiveSession, alice: User, members: dict[str, Any], word: str
) -> None:
    page = await connected(session, alice)
    await page.say(**{**hello(), **members})
    code, error = await page.closing()
    assert code == 4400
    assert error
    assert word in error["reason"]
    await page.leave()


async def test_audio_before_hello_is_refused(session: LiveSession, alice: User) -> None:
    page = await connected(session, alice)
    await page.speak(0, PCM)
    assert (await page.closing())[0] == 4400
    await page.leave()


@pytest.mark.parametrize("data", [b"short", b"\0" * 8, b"\0" * 11, b"\0" * 70000])
async def test_bad_packet_is_refused(session: LiveSession, alice: User, data: bytes) -> None:
    async with engine_by_hand():
        page = await capturing(session, alice)
        await page.socket.send_to(bytes_data=data)
        assert (await page.closing())[0] == 4400
        await page.leave()


async def test_packet_from_the_future_is_refused(session: LiveSession, alice: User) -> None:
    """It would make the recording hours of zeros."""
    async with engine_by_hand():
        page = await capturing(session, alice)
        await page.speak(2**31, PCM)
        code, error = await page.closing()
        assert code == 4400
        assert error
        assert "future" in error["reason"]
        await page.leave()


async def test_too_much_at_once_is_refused(session: LiveSession, alice: User) -> None:
    async with engine_by_hand():
        page = await capturing(session, alice)
        for number in range(7000):
            await page.speak(number, b"\0\0")
        code, error = await page.closing()
        assert (code, error and error["code"]) == (4429, "too_fast")
        await page.leave()


async def test_too_many_marks_are_refused(
    session: LiveSession, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is an entry in the audio stream, and a row."""
    monkeypatch.setattr(allowance, "BURST_S", 3.5 * allowance.PACKET_COST_S)
    monkeypatch.setattr(allowance, "RATE", 0.0)
    async with engine_by_hand():
        page = await capturing(session, alice)
        for sample in range(4):
            await page.say(type="pause", sample=sample)
        assert (await page.closing())[0] == 4429
        await page.leave()


async def test_nothing_is_kept_of_a_socket_whose_end_the_database_missed(
    session: LiveSession, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(**_: object) -> None:
        raise OperationalError

    monkeypatch.setattr(live_sessions, "note_packet", away)
    async with engine_by_hand():
        page = await capturing(session, alice)
        await page.leave()
    assert asyncio.get_running_loop() not in links._links


async def test_fault_in_a_socket_closes_it_without_telling_its_text(
    session: LiveSession,
    alice: User,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("words that were said")

    monkeypatch.setattr(live_sessions, "start_live_session", fail)
    async with engine_by_hand():
        page = await connected(session, alice)
        await page.say(**hello())
        code, error = await page.closing()
        assert (code, error and error["code"]) == (4503, "error")
        await page.leave()
    assert "socket_failed" in caplog.text
    assert "words that were said" not in caplog.text


async def test_stranger_and_colleague_get_404(session: LiveSession, bob: User) -> None:
    """A colleague may read the captions, not speak into them."""
    page = await connected(session, bob)
    await page.say(**hello())
    assert (await page.closing())[0] == 4404
    await page.leave()


async def test_anonymous_is_asked_to_log_in(session: LiveSession) -> None:
    page = Page(f"/ws/v1/live/{session.id}/capture", None)
    await page.connect()
    assert (await page.closing())[0] == 4401
    await page.leave()


async def test_without_an_engine_the_page_is_told_to_try_later(
    session: LiveSession, alice: User
) -> None:
    page = await connected(session, alice)
    await page.say(**hello())
    code, error = await page.closing()
    assert (code, error and error["code"]) == (4503, "no_engine")
    assert await state_of(session) == LiveState.CREATED
    await page.leave()


async def test_full_engine_refuses_with_its_reason(session: LiveSession, alice: User) -> None:
    async with engine_by_hand(slots=1):
        first = await capturing(session, alice)
        other = await sync_to_async(make_session)(alice)
        page = await connected(other, alice)
        await page.say(**hello())
        code, error = await page.closing()
        assert (code, error and error["code"]) == (4503, "no_free_slot")
        await page.leave()
        await first.leave()


async def test_other_page_is_refused_while_one_captures(session: LiveSession, alice: User) -> None:
    async with engine_by_hand():
        first = await capturing(session, alice)
        second = await connected(session, alice)
        await second.say(**hello("capture-two"))
        code, error = await second.closing()
        assert (code, error and error["code"]) == (4409, "in_use")
        await second.leave()
        await first.speak(0, PCM)
        assert (await entries_of(session, 1))[0].payload == PCM
        await first.leave()


async def test_other_page_may_take_over_by_an_explicit_act(
    session: LiveSession, alice: User
) -> None:
    async with engine_by_hand():
        first = await capturing(session, alice)
        second = await capturing(session, alice, capture_id="capture-two", take_over=True)
        assert (await first.closing())[0] == 4409
        await second.speak(0, PCM)
        await entries_of(session, 1)
        await first.leave()
        await second.leave()


async def test_a_colleague_takes_nothing_over(session: LiveSession, alice: User, bob: User) -> None:
    """To read a session of the organisation is no right to speak in it."""
    async with engine_by_hand():
        first = await capturing(session, alice)
        second = await connected(session, bob)
        await second.say(**hello("capture-two", take_over=True))
        code, error = await second.closing()
        assert (code, error and error["code"]) == (4404, "not_found")
        await second.leave()
        await first.speak(0, PCM)
        assert (await entries_of(session, 1))[0].payload == PCM
        await first.leave()


async def test_same_page_takes_over_at_once(session: LiveSession, alice: User) -> None:
    """Its network was lost, and the server has not noticed yet."""
    async with engine_by_hand():
        first = await capturing(session, alice)
        second = await capturing(session, alice)
        assert (await first.closing())[0] == 4409
        await first.leave()
        await second.leave()


async def test_page_that_left_holds_nothing(session: LiveSession, alice: User) -> None:
    async with engine_by_hand():
        first = await capturing(session, alice)
        await first.leave()
        second = await capturing(session, alice, capture_id="capture-two")
        await second.leave()


async def test_page_that_comes_back_is_told_where_to_go_on(
    session: LiveSession, alice: User
) -> None:
    async with engine_by_hand(), servers() as (broker, _):
        first = await capturing(session, alice)
        await first.speak(0, PCM)
        await entries_of(session, 1)
        await first.leave()
        await broker.hset(protocol.session_key(str(session.id)), "acknowledged_sample", 1600)
        second = await capturing(session, alice)
        assert second.ready["sample"] == 1600
        assert 2000 <= second.ready["next_sample"] < 2000 + 16000 * 60
        await second.leave()


async def test_ended_session_takes_no_audio(session: LiveSession, alice: User) -> None:
    await sync_to_async(live_sessions.end_live_session)(session=session)
    page = await connected(session, alice)
    await page.say(**hello())
    code, error = await page.closing()
    assert (code, error and error["code"]) == (4410, "ended")
    await page.leave()


async def test_socket_closes_when_the_session_is_ended_elsewhere(
    session: LiveSession, alice: User
) -> None:
    async with engine_by_hand():
        page = await capturing(session, alice)
        await publish(live_sessions.state_event(session.id, LiveState.ENDING))
        assert (await page.closing())[0] == 4410
        await page.leave()


async def test_backlog_closes_the_socket_and_keeps_the_audio(
    session: LiveSession, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing unread is trimmed: the page keeps what is not acknowledged and comes back."""
    monkeypatch.setattr("transcription.realtime.socket.TICK_S", 0.01)
    async with engine_by_hand(), servers() as (_, audio):
        page = await capturing(session, alice)
        entry = AudioEntry(AudioEntryKind.AUDIO, 0, PCM)
        for _ in range(500):
            await audio.xadd(protocol.audio_key(str(session.id)), entry.as_fields())
        code, error = await page.closing()
        assert (code, error and error["code"]) == (4503, "try_later")
        assert await audio.xlen(protocol.audio_key(str(session.id))) == 500
        await page.leave()


async def test_packet_after_a_long_silence_asks_for_a_slot_again(
    session: LiveSession, alice: User
) -> None:
    async with engine_by_hand() as commands:
        page = await capturing(session, alice)
        await sync_to_async(live_sessions.move_live_session)(session.id, LiveState.WAITING)
        await publish(live_sessions.state_event(session.id, LiveState.WAITING))
        await page.hear("state", lambda event: event["state"] == "waiting")
        await page.speak(0, PCM)
        await page.hear("state", lambda event: event["state"] == "live")
        await entries_of(session, 1)
        assert len(commands) == 2
        assert await state_of(session) == LiveState.LIVE
        await page.leave()


async def test_pause_is_told_to_readers_who_come_later(session: LiveSession, alice: User) -> None:
    """And on resuming, a slot is asked for again: a long pause had freed it."""
    async with engine_by_hand() as commands:
        page = await capturing(session, alice)
        await page.say(type="pause", sample=0)
        await page.hear("state", lambda event: event["state"] == "paused")
        reader = Page(f"/ws/v1/live/{session.id}/captions", await sync_to_async(log_in)(alice))
        await reader.connect()
        assert (await reader.hear("ready"))["state"] == "paused"
        await page.say(type="resume", sample=0)
        assert (await reader.hear("state"))["state"] == "live"
        assert len(commands) == 2
        await reader.leave()
        await page.leave()


async def test_stop_waits_for_closed(session: LiveSession, alice: User) -> None:
    async with engine_by_hand():
        page = await capturing(session, alice)
        await page.speak(0, PCM)
        await page.say(type="stop", sample=2000)
        entries = await entries_of(session, 2)
        assert (entries[-1].kind, entries[-1].first_sample) == (AudioEntryKind.END, 2000)
        await publish(live_sessions.state_event(session.id, LiveState.ENDING))
        await publish(ViewerEvent("closed", str(session.id), seq=1, recording="r"))
        assert (await page.hear("closed"))["recording"] == "r"
        assert (await page.closing())[0] == 1000
        await page.leave()


async def test_stop_says_that_the_rest_happens_without_the_page(
    session: LiveSession, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture, "CLOSED_TIMEOUT_S", 0.01)
    async with engine_by_hand():
        page = await capturing(session, alice)
        await page.say(type="stop", sample=0)
        event = await page.hear("state", lambda event: event["state"] == "ending")
        assert "Saved" in event["reason"]
        assert (await page.closing())[0] == 1000
        await page.leave()


async def test_leaving_is_noted_for_the_time_of_grace(session: LiveSession, alice: User) -> None:
    async with engine_by_hand():
        page = await capturing(session, alice)
        long_ago = timezone.now() - timedelta(hours=1)
        await sync_to_async(live_sessions.note_packet)(session_id=session.id, at=long_ago)
        await page.leave()
        await session.arefresh_from_db()
        assert session.last_packet_at is not None
        assert session.last_packet_at > long_ago


async def test_packet_of_a_socket_that_was_taken_over_is_refused(
    session: LiveSession, alice: User
) -> None:
    """Behind those of its successor it would look like a gap that swallows the replay."""
    async with engine_by_hand(), servers() as (_, audio):
        publisher = AudioPublisher(audio)
        old, new = (Lane(str(session.id), name) for name in ("old", "new"))
        await publisher.take_over(str(session.id), "old")
        publisher.put(old, AudioEntry(AudioEntryKind.AUDIO, 0, PCM))
        await publisher.drain()
        await publisher.take_over(str(session.id), "new")
        publisher.put(new, AudioEntry(AudioEntryKind.AUDIO, 2000, PCM))
        publisher.put(old, AudioEntry(AudioEntryKind.AUDIO, 9000, PCM))
        await publisher.drain()
        assert [entry.first_sample for entry in await entries_of(session, 2)] == [0, 2000]
        assert old.is_superseded
        assert not new.is_broken


async def test_audio_behind_the_end_of_a_session_leaves_nothing(session: LiveSession) -> None:
    """Its stream would be nobody's to delete. The page is told to come back, and learns the end."""
    async with servers() as (_, audio):
        key, writer = protocol.audio_key(str(session.id)), protocol.writer_key(str(session.id))
        publisher, lane = AudioPublisher(audio), Lane(str(session.id), "page")
        await publisher.take_over(str(session.id), "page")
        await audio.delete(key, writer)  # as the recorder does
        publisher.put(lane, AudioEntry(AudioEntryKind.AUDIO, 0, PCM))
        await publisher.drain()
        assert not await audio.exists(key)
        assert (lane.is_broken, lane.is_superseded) == (True, False)


async def test_lane_sends_nothing_after_its_first_failure() -> None:
    """A later packet would let the recorder acknowledge audio that was lost."""
    lane = Lane("session", "connection")
    lane.put(AudioEntry(AudioEntryKind.AUDIO, 0, PCM))
    lane.is_broken = True
    assert lane.take() is None


# Latency mode -------------------------------------------------------------------------------------

MODES = [
    {"mode_ms": 160, "words": "Fastest · 160 ms"},
    {"mode_ms": 560, "words": "Most accurate · 560 ms"},
]


async def mode_of(session: LiveSession) -> int:
    await session.arefresh_from_db()
    return session.mode_ms


async def test_speaker_changes_the_mode_while_the_capture_runs(
    session: LiveSession, alice: User
) -> None:
    async with engine_by_hand() as commands:
        page = await capturing(session, alice)
        assert page.ready["modes"] == MODES
        await page.speak(0, PCM)
        await page.say(type="set_mode", mode_ms=560)
        event = await page.hear("mode")
        assert (event["mode_ms"], event["packet_ms"], event["modes"]) == (560, 200, MODES)
        assert (commands[-1].kind, commands[-1].mode_ms) == ("set_mode", 560)
        assert await mode_of(session) == 560
        await page.speak(2000, PCM)
        await page.say(type="pause", sample=4000)
        entries = await entries_of(session, 2)
        while entries[-1].kind is not AudioEntryKind.PAUSED:
            entries = await entries_of(session, len(entries) + 1)
        assert b"".join(entry.payload for entry in entries) == PCM * 2
        await page.leave()


async def test_changed_mode_is_asked_for_after_a_pause_and_by_a_page_that_comes_back(
    session: LiveSession, alice: User
) -> None:
    async with engine_by_hand() as commands:
        first = await capturing(session, alice, mode_ms=160)
        await first.say(type="set_mode", mode_ms=560)
        await first.hear("mode")
        await first.say(type="pause", sample=0)
        await first.say(type="resume", sample=0)
        await first.hear("state", lambda event: event["state"] == "live")
        await first.leave()
        second = await capturing(session, alice)
        await second.leave()
        opened = [command.mode_ms for command in commands if command.kind == "open"]
        assert opened == [160, 560, 560]


@pytest.mark.parametrize("mode_ms", [0, 80, 10_000])
async def test_mode_that_the_engine_lacks_is_refused_and_the_capture_goes_on(
    session: LiveSession, alice: User, mode_ms: int
) -> None:
    async with engine_by_hand():
        page = await capturing(session, alice)
        await page.say(type="set_mode", mode_ms=mode_ms)
        refused = await page.hear("mode_refused")
        assert (refused["mode_ms"], refused["code"]) == (mode_ms, "unsupported_mode")
        assert refused["reason"].endswith(".")
        assert await mode_of(session) == 0
        await page.speak(0, PCM)
        assert (await entries_of(session, 1))[0].payload == PCM
        await page.leave()


async def test_engine_that_does_not_answer_changes_no_mode_and_holds_no_audio(
    session: LiveSession, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_by_hand(), servers() as (broker, _):
        page = await capturing(session, alice)
        monkeypatch.setattr(client, "ADMISSION_TIMEOUT_S", 1.0)
        await broker.hset(protocol.session_key(str(session.id)), "owner", "dead:1")
        await page.say(type="set_mode", mode_ms=560)
        await page.speak(0, PCM)
        assert (await entries_of(session, 1))[0].payload == PCM
        assert (await page.hear("mode_refused"))["code"] == "no_engine"
        assert await mode_of(session) == 0
        await page.leave()


async def test_broker_that_fails_changes_no_mode_and_the_capture_goes_on(
    session: LiveSession, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> None:
        raise RedisConnectionError

    async with engine_by_hand():
        page = await capturing(session, alice)
        monkeypatch.setattr(client, "set_stream_mode", away)
        await page.say(type="set_mode", mode_ms=560)
        assert (await page.hear("mode_refused"))["code"] == "try_later"
        await page.speak(0, PCM)
        await entries_of(session, 1)
        await page.leave()


async def test_mode_of_a_session_that_waits_is_taken_when_it_is_heard_again(
    session: LiveSession, alice: User
) -> None:
    async with engine_by_hand() as commands, servers() as (broker, _):
        page = await capturing(session, alice)
        await broker.hset(protocol.session_key(str(session.id)), "owner", "")
        await sync_to_async(live_sessions.move_live_session)(session.id, LiveState.WAITING)
        await publish(live_sessions.state_event(session.id, LiveState.WAITING))
        await page.hear("state", lambda event: event["state"] == "waiting")
        await page.say(type="set_mode", mode_ms=560)
        assert (await page.hear("mode"))["mode_ms"] == 560
        await page.speak(0, PCM)
        event = await page.hear("mode")
        assert (event["mode_ms"], event["packet_ms"]) == (560, 200)
        assert [command.kind for command in commands] == ["open", "open"]
        assert commands[-1].mode_ms == 560
        await page.leave()


async def test_an_engine_that_takes_over_tells_the_speaker_what_it_offers(
    session: LiveSession, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_by_hand(), servers() as (broker, _):
        monkeypatch.setattr(socket, "TICK_S", 0.05)
        page = await capturing(session, alice, mode_ms=560)
        monkeypatch.setattr(live, "ENGINE_MODES_MS", (560, 1120))
        await broker.hset(protocol.session_key(str(session.id)), "epoch", 2)
        event = await page.hear("mode")
        assert event["mode_ms"] == 560
        assert [mode["mode_ms"] for mode in event["modes"]] == [560, 1120]
        await page.leave()


async def test_of_many_choices_the_last_one_holds(session: LiveSession, alice: User) -> None:
    async with engine_by_hand():
        page = await capturing(session, alice)
        for mode_ms in (560, 160, 560, 160, 560):
            await page.say(type="set_mode", mode_ms=mode_ms)
        await page.say(type="set_mode", mode_ms=80)
        await page.hear("mode_refused")
        await page.say(type="set_mode", mode_ms=160)
        await page.hear("mode", lambda event: event["mode_ms"] == 160)
        assert await mode_of(session) == 160
        await page.leave()


@pytest.mark.parametrize("mode_ms", ["560", None, 1.5, -1])
async def test_malformed_mode_is_refused_as_any_malformed_message(
    session: LiveSession, alice: User, mode_ms: object
) -> None:
    async with engine_by_hand():
        page = await capturing(session, alice)
        await page.say(type="set_mode", mode_ms=mode_ms)
        code, error = await page.closing()
        assert (code, error and "mode_ms" in error["reason"]) == (4400, True)
        await page.leave()


async def test_mode_before_ready_is_refused(session: LiveSession, alice: User) -> None:
    page = await connected(session, alice)
    await page.say(type="set_mode", mode_ms=560)
    assert (await page.closing())[0] == 4400
    await page.leave()


async def test_reader_changes_no_mode(session: LiveSession, alice: User, bob: User) -> None:
    async with engine_by_hand() as commands:
        page = await capturing(session, alice)
        reader = Page(f"/ws/v1/live/{session.id}/captions", await sync_to_async(log_in)(bob))
        assert await reader.connect()
        await reader.hear("ready")
        await reader.say(type="set_mode", mode_ms=560)
        assert (await reader.closing())[0] == 4400
        assert [command.kind for command in commands] == ["open"]
        await reader.leave()
        await page.leave()


async def test_page_that_may_capture_no_more_changes_no_mode(
    session: LiveSession, alice: User, charlie: User
) -> None:
    async with engine_by_hand() as commands:
        page = await capturing(session, alice)
        await LiveSession.objects.filter(id=session.id).aupdate(owner=charlie)
        await page.say(type="set_mode", mode_ms=560)
        assert (await page.closing())[0] == 4404
        assert [command.kind for command in commands] == ["open"]
        await page.leave()


async def language_of(session: LiveSession) -> str:
    await session.arefresh_from_db()
    return session.language


async def test_speaker_changes_the_language_while_the_capture_runs(
    session: LiveSession, alice: User
) -> None:
    async with engine_by_hand() as commands:
        first = await capturing(session, alice)
        assert first.ready["language"] == session.language
        await first.say(type="set_language", language="de")
        assert (await first.hear("language"))["language"] == "de"
        assert (commands[-1].kind, commands[-1].language) == ("set_language", "de")
        assert await language_of(session) == "de"
        await first.leave()
        second = await capturing(session, alice)
        assert second.ready["language"] == "de"
        await second.leave()
        assert [command.language for command in commands if command.kind == "open"][-1] == "de"


async def test_a_language_changed_to_none_is_detected_from_then_on(
    session: LiveSession, alice: User
) -> None:
    async with engine_by_hand() as commands:
        page = await capturing(session, alice, language="en")
        await page.say(type="set_language", language="")
        assert (await page.hear("language"))["language"] == ""
        assert commands[-1].language is None
        await page.say(type="pause", sample=0)
        await page.say(type="resume", sample=0)
        await page.hear("state", lambda event: event["state"] == "live")
        await page.leave()
        opened = [command.language for command in commands if command.kind == "open"]
        assert opened == ["en", None]


async def test_language_that_the_engine_lacks_is_refused_and_the_capture_goes_on(
    session: LiveSession, alice: User
) -> None:
    async with engine_by_hand():
        page = await capturing(session, alice)
        before = session.language
        await page.say(type="set_language", language=UNKNOWN_LANGUAGE)
        refused = await page.hear("language_refused")
        assert (refused["language"], refused["code"]) == (UNKNOWN_LANGUAGE, "unsupported_language")
        assert refused["reason"].endswith(".")
        assert await language_of(session) == before
        await page.speak(0, PCM)
        assert (await entries_of(session, 1))[0].payload == PCM
        await page.leave()


async def test_language_of_a_session_that_waits_is_taken_when_it_is_heard_again(
    session: LiveSession, alice: User
) -> None:
    async with engine_by_hand() as commands, servers() as (broker, _):
        page = await capturing(session, alice)
        await broker.hset(protocol.session_key(str(session.id)), "owner", "")
        await sync_to_async(live_sessions.move_live_session)(session.id, LiveState.WAITING)
        await publish(live_sessions.state_event(session.id, LiveState.WAITING))
        await page.hear("state", lambda event: event["state"] == "waiting")
        await page.say(type="set_language", language="de")
        assert (await page.hear("language"))["language"] == "de"
        await page.speak(0, PCM)
        await page.hear("state", lambda event: event["state"] == "live")
        assert [command.kind for command in commands] == ["open", "open"]
        assert commands[-1].language == "de"
        await page.leave()
