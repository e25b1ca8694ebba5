"""The tools' socket with what telephones speak: G.711 at 8 kHz, and both sides of a call."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from asgiref.sync import sync_to_async

from asr_engine import protocol
from asr_engine.protocol import AudioEntry, AudioEntryKind, ViewerEvent
from tests.fakes.live import (
    PATIENCE_S,
    Page,
    engine_by_hand,
    hello,
    log_in,
    make_session,
    publish,
    servers,
)
from transcription.models import LiveSession, LiveState
from webapp.accounts.models import ApiToken, User

pytestmark = pytest.mark.django_db(transaction=True)

LOUD, QUIET = b"\x80", b"\xff"
"""Codes of G.711 in mu-law: 32124 and 0."""


@pytest.fixture
def token(alice: User) -> str:
    return ApiToken.issue(user=alice, name="exchange")[1]


def telephone(token: str, **members: Any) -> dict[str, Any]:
    return hello(token=token, encoding="mulaw", sample_rate=8000, **members)


def call(token: str, **members: Any) -> dict[str, Any]:
    return telephone(token, channels=2, speakers=["Caller", "Desk"], **members)


async def connected(greeting: dict[str, Any]) -> Page:
    page = Page("/ws/v1/stream", None, origin="")
    assert await page.connect()
    await page.say(**greeting)
    return page


async def held(session: str, samples: int) -> list[AudioEntry]:
    """What the audio server has of a session, once it is so much."""
    key, last_id, found = protocol.audio_key(session), "0", []
    async with asyncio.timeout(PATIENCE_S), servers() as (_, audio):
        while not found or found[-1].end_sample < samples:
            answer = await audio.xread({key: last_id}, block=5000)
            for entry_id, fields in answer[0][1] if answer else []:
                last_id = entry_id
                found.append(AudioEntry.from_fields(fields))
    return found


def loudness(entries: list[AudioEntry]) -> int:
    audio = b"".join(entry.payload for entry in entries)
    return int(np.abs(np.frombuffer(audio, "<i2").astype(int)).max())


async def test_telephone_audio_arrives_at_the_engines_rate(token: str) -> None:
    async with engine_by_hand():
        page = await connected(telephone(token, reference="call-12"))
        session = (await page.hear("ready"))["session"]
        await page.speak(0, LOUD * 800)
        await page.speak(800, LOUD * 800)
        entries = await held(session, 3200)
        assert sum(len(entry.payload) for entry in entries) == 2 * 3200
        assert loudness(entries) > 30_000
        assert (await LiveSession.objects.aget()).reference == "call-12"
        await page.leave()


async def test_positions_are_counted_at_the_rate_of_hello(token: str) -> None:
    async with engine_by_hand():
        page = await connected(telephone(token))
        ready = await page.hear("ready")
        await page.speak(ready["next_sample"], QUIET * 800)
        await page.speak(400, QUIET * 800)  # half of it is held already
        entries = await held(ready["session"], 2400)
        assert entries[0].first_sample == 0
        assert entries[-1].end_sample == 2400
        await publish(ViewerEvent(type="ack", session=ready["session"], sample=1600))
        assert (await page.hear("ack"))["sample"] == 800
        await page.say(type="stop", sample=1500)
        entries = await held(ready["session"], 2401)
        assert (entries[-1].kind, entries[-1].first_sample) == (AudioEntryKind.END, 3000)
        await page.leave()


@pytest.mark.parametrize(
    "members",
    [
        {"encoding": "mulaw", "sample_rate": 16000},
        {"encoding": "opus", "sample_rate": 8000},
        {"encoding": "alaw", "sample_rate": 8000, "channels": 3},
        {"encoding": "pcm16", "sample_rate": 44100},
        {"encoding": "alaw", "sample_rate": 8000, "sessions": ["a", "b"]},
        {"encoding": "alaw", "sample_rate": 8000, "channels": 2, "speakers": ["one"]},
        {"reference": "x" * 65},
    ],
)
async def test_a_format_that_is_none_is_refused(token: str, members: dict[str, Any]) -> None:
    page = await connected(hello(token=token, **members))
    code, error = await page.closing()
    assert (code, error and error["code"]) == (4400, "invalid_input")
    assert not await LiveSession.objects.aexists()
    await page.leave()


async def test_a_packet_above_the_limit_is_refused(token: str) -> None:
    async with engine_by_hand():
        page = await connected(telephone(token))
        await page.hear("ready")
        await page.speak(0, QUIET * 16_384)
        assert (await page.closing())[0] == 4400
        await page.leave()


# Two channels ------------------------------------------------------------------------------------


async def test_each_side_of_a_call_is_a_session_of_its_own(token: str) -> None:
    async with engine_by_hand():
        page = await connected(call(token, title="Order 7", reference="call-7"))
        ready = await page.hear("ready")
        assert "session" not in ready
        caller, desk = ready["sessions"]
        titles = {str(row.id): row.title async for row in LiveSession.objects.all()}
        assert titles == {caller: "Order 7 · Caller", desk: "Order 7 · Desk"}
        assert {row.reference async for row in LiveSession.objects.all()} == {"call-7"}
        await page.speak(0, (LOUD + QUIET) * 1600)
        assert loudness(await held(caller, 3200)) > 30_000
        assert loudness(await held(desk, 3200)) == 0
        await page.leave()


async def test_what_is_said_tells_which_side_said_it(token: str) -> None:
    async with engine_by_hand():
        page = await connected(call(token))
        caller, desk = (await page.hear("ready"))["sessions"]
        await publish(ViewerEvent(type="final", session=desk, seq=1, utterance=0, text="Hello."))
        event = await page.hear("final")
        assert (event["channel"], event["speaker"], event["session"]) == (1, "Desk", desk)
        await publish(ViewerEvent(type="partial", session=caller, text="Good"))
        event = await page.hear("partial")
        assert (event["channel"], event["speaker"], event["text"]) == (0, "Caller", "Good")
        await page.leave()


async def test_what_is_on_disk_of_both_sides_is_acknowledged(token: str) -> None:
    async with engine_by_hand():
        page = await connected(call(token))
        caller, desk = (await page.hear("ready"))["sessions"]
        await publish(ViewerEvent(type="ack", session=caller, sample=3200))
        await publish(ViewerEvent(type="ack", session=desk, sample=1600))
        assert await page.hear("ack") == {"type": "ack", "sample": 800}
        await publish(ViewerEvent(type="ack", session=desk, sample=4800))
        assert await page.hear("ack") == {"type": "ack", "sample": 1600}
        await page.leave()


async def test_stop_ends_both_and_the_socket_after_the_later(token: str) -> None:
    async with engine_by_hand():
        page = await connected(call(token))
        sessions = (await page.hear("ready"))["sessions"]
        await page.speak(0, (LOUD + LOUD) * 800)
        await page.say(type="stop", sample=800)
        for session in sessions:
            assert (await held(session, 1600))[0].end_sample == 1600
            await publish(ViewerEvent(type="closed", session=session, seq=1))
        channels = {(await page.hear("closed"))["channel"] for _ in sessions}
        assert channels == {0, 1}
        assert await page.closing() == (1000, None)
        await page.leave()


async def test_a_call_comes_back_to_its_sessions(token: str) -> None:
    async with engine_by_hand():
        first = await connected(call(token))
        sessions = (await first.hear("ready"))["sessions"]
        await first.leave()
        second = await connected(call(token, sessions=sessions))
        assert (await second.hear("ready"))["sessions"] == sessions
        assert await LiveSession.objects.acount() == 2
        await second.leave()


async def test_a_call_with_room_for_one_side_is_refused_whole(token: str) -> None:
    async with engine_by_hand(slots=1):
        page = await connected(call(token))
        code, error = await page.closing()
        assert error is not None
        assert (code, error["code"]) == (4503, "no_free_slot")
        await page.leave()
    states = {row.state async for row in LiveSession.objects.all()}
    assert states <= {LiveState.LIVE}  # its end is on the way to the recorder
    for session in [str(row.id) async for row in LiveSession.objects.all()]:
        assert [entry.kind for entry in await held(session, 0)] == [AudioEntryKind.END]


async def test_a_message_for_one_side_goes_there_alone(token: str) -> None:
    async with engine_by_hand() as commands:
        page = await connected(call(token))
        _, desk = (await page.hear("ready"))["sessions"]
        await page.say(type="set_language", language="de", channel=1)
        answer = await page.hear("language")
        assert (answer["channel"], answer["language"]) == (1, "de")
        asked = [command.session for command in commands if command.kind == "set_language"]
        assert asked == [desk]
        await page.leave()


async def test_audio_that_is_not_whole_for_both_sides_is_refused(token: str) -> None:
    async with engine_by_hand():
        page = await connected(call(token))
        await page.hear("ready")
        await page.speak(0, QUIET * 801)
        code, error = await page.closing()
        assert (code, error and error["code"]) == (4400, "bad_packet")
        await page.leave()


async def test_a_wrong_token_is_refused_once(alice: User) -> None:
    page = await connected(call("tr_unknown"))
    code, error = await page.closing()
    assert (code, error and error["code"]) == (4401, "not_authenticated")
    assert not await LiveSession.objects.aexists()
    await page.leave()


async def test_the_capture_page_has_one_channel(alice: User) -> None:
    session = await sync_to_async(make_session)(alice)
    client = await sync_to_async(log_in)(alice)
    page = Page(f"/ws/v1/live/{session.id}/capture", client)
    assert await page.connect()
    await page.say(**hello(channels=2))
    code, error = await page.closing()
    assert (code, error and error["reason"]) == (4400, "This socket takes one channel.")
    await page.leave()
