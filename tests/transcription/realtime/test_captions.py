"""The captions socket: who may read, all that was said, and nothing twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from asgiref.sync import sync_to_async

from asr_engine.protocol import ViewerEvent
from tests.fakes.live import Page, final, log_in, make_session, publish
from transcription.models import LiveMarkKind, LiveSession, LiveState, Visibility
from transcription.services import live_sessions
from webapp.accounts.models import User

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(alice: User) -> LiveSession:
    return make_session(alice)


def captions_of(session: LiveSession, reader: User | None, query: str = "") -> Page:
    client = None if reader is None else log_in(reader)
    return Page(f"/ws/v1/live/{session.id}/captions{query}", client)


@sync_to_async
def store(session: LiveSession, *texts: str, first: int = 0) -> list[ViewerEvent]:
    events = []
    for number, text in enumerate(texts, start=first):
        stored = live_sessions.record_final(event=final(session, number, text))
        assert stored is not None
        events.append(live_sessions.final_event(stored))
    return events


async def open_captions(session: LiveSession, reader: User, query: str = "") -> Page:
    page = await sync_to_async(captions_of)(session, reader, query)
    assert await page.connect()
    return page


async def test_late_joiner_gets_everything_in_order(session: LiveSession, alice: User) -> None:
    await store(session, "w0", "w1")
    await sync_to_async(live_sessions.record_mark)(
        session_id=session.id,
        kind=LiveMarkKind.GAP,
        start_ms=500,
        end_ms=900,
        wall_at=session.created_at,
    )
    page = await open_captions(session, alice)
    ready = await page.hear("ready")
    assert (ready["seq"], ready["title"], ready["state"]) == (3, "Weekly meeting", "created")
    history = await page.hear("history")
    assert [(event["type"], event["seq"]) for event in history["events"]] == [
        ("final", 1),
        ("gap", 3),
        ("final", 2),
    ]
    assert (await page.hear("head"))["seq"] == 3
    await page.leave()


async def test_long_history_comes_in_batches(session: LiveSession, alice: User) -> None:
    await store(session, *(f"w{number}" for number in range(250)))
    page = await open_captions(session, alice)
    batches = [(await page.hear("history"))["events"] for _ in range(2)]
    assert [len(batch) for batch in batches] == [200, 50]
    await page.leave()


async def test_reader_who_comes_back_gets_only_what_is_new(
    session: LiveSession, alice: User
) -> None:
    await store(session, "w0", "w1", "w2")
    page = await open_captions(session, alice, "?after_seq=2")
    assert [event["text"] for event in (await page.hear("history"))["events"]] == ["w2"]
    await page.leave()


async def test_event_that_is_in_the_history_does_not_come_again(
    session: LiveSession, alice: User
) -> None:
    """The recorder announces again after a crash."""
    stored = await store(session, "w0")
    page = await open_captions(session, alice)
    await page.hear("head")
    await publish(stored[0])
    new = await store(session, "w1", first=1)
    await publish(new[0])
    assert (await page.hear("final"))["text"] == "w1"
    await page.leave()


async def test_missed_changes_are_sent_again_on_request(session: LiveSession, alice: User) -> None:
    page = await open_captions(session, alice)
    await page.hear("head")
    await store(session, "w0", "w1")
    await page.say(type="refetch", after_seq=1)
    assert [event["text"] for event in (await page.hear("history"))["events"]] == ["w1"]
    assert (await page.hear("head"))["seq"] == 2
    await page.leave()


async def test_acknowledgements_are_for_the_speaker_alone(
    session: LiveSession, alice: User
) -> None:
    page = await open_captions(session, alice)
    await page.hear("head")
    session_id = str(session.id)
    await publish(ViewerEvent("ack", session_id, sample=1600))
    await publish(ViewerEvent("taken", session_id, connection="x"))
    await publish(ViewerEvent("state", session_id, state="waiting"))
    message = await page.socket.receive_json_from(timeout=10)
    assert message["type"] == "state"
    await page.leave()


async def test_ended_session_names_its_recording(session: LiveSession, alice: User) -> None:
    await sync_to_async(live_sessions.end_live_session)(session=session)
    page = await open_captions(session, alice)
    ready = await page.hear("ready")
    assert ready["state"] == LiveState.ENDED
    assert "recording" not in ready
    await page.leave()


async def test_anonymous_is_asked_to_log_in(session: LiveSession) -> None:
    page = captions_of(session, None)
    await page.connect()
    code, error = await page.closing()
    assert (code, error and error["code"]) == (4401, "not_authenticated")
    await page.leave()


async def test_stranger_gets_404(session: LiveSession, charlie: User) -> None:
    page = await open_captions(session, charlie)
    code, error = await page.closing()
    assert (code, error and error["code"]) == (4404, "not_found")
    await page.leave()


async def test_colleague_reads_a_session_of_the_organisation(alice: User, bob: User) -> None:
    session = await sync_to_async(make_session)(alice, visibility=Visibility.ORGANISATION)
    page = await open_captions(session, bob)
    assert (await page.hear("ready"))["title"] == "Weekly meeting"
    await page.leave()


async def test_page_of_another_site_is_refused(session: LiveSession, alice: User) -> None:
    client = await sync_to_async(log_in)(alice)
    path = f"/ws/v1/live/{session.id}/captions"
    page = Page(path, client, origin="https://evil.example")
    assert not await page.connect()


async def test_socket_closes_when_the_person_logs_out(session: LiveSession, alice: User) -> None:
    client = await sync_to_async(log_in)(alice)
    page = Page(f"/ws/v1/live/{session.id}/captions", client)
    await page.connect()
    await page.hear("head")
    await sync_to_async(client.logout)()
    assert (await page.closing())[0] == 4401
    await page.leave()


async def test_socket_closes_when_the_person_is_disabled(session: LiveSession, alice: User) -> None:
    page = await open_captions(session, alice)
    await page.hear("head")
    alice.is_active = False
    await sync_to_async(alice.save)()
    assert (await page.closing())[0] == 4401
    await page.leave()


async def test_text_is_sent_as_it_was_said(session: LiveSession, alice: User) -> None:
    """Unicode, markup and all: pages show it as text."""
    text = '<b>"早上好"</b> & so on'
    page = await open_captions(session, alice)
    await page.hear("head")
    await publish(replace((await store(session, text))[0], words=()))
    assert (await page.hear("final"))["text"] == text
    await page.leave()


@pytest.mark.parametrize(
    "message", ["{", "[]", '{"type":"stop","sample":0}', '{"type":"nonsense"}']
)
async def test_bad_message_closes_with_a_sentence(
    session: LiveSession, alice: User, message: str
) -> None:
    page = await open_captions(session, alice)
    await page.hear("head")
    await page.socket.send_to(text_data=message)
    code, error = await page.closing()
    assert code == 4400
    assert error
    assert error["reason"]
    await page.leave()
