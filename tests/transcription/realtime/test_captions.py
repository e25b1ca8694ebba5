"""The captions socket: who may read, all that was said, and nothing twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from asr_engine.protocol import ViewerEvent
from tests.fakes.live import Page, final, log_in, make_session, publish, servers
from tests.fakes.pages import make_recording
from tests.fakes.shares import make_team, share
from transcription.models import (
    LiveMarkKind,
    LiveSession,
    LiveState,
    LiveUtterance,
    ShareLink,
    Visibility,
)
from transcription.realtime import border, captions, socket
from transcription.services import live_sessions, share_links, sharing
from transcription.services.readers import count_readers, now_ms, readers_key
from webapp.accounts.models import User
from webapp.accounts.teams import remove_member

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


@sync_to_async
def refine(session: LiveSession, utterance: int, text: str) -> ViewerEvent:
    heard = LiveUtterance.objects.get(session=session, utterance=utterance)
    stored = live_sessions.record_refined(utterance_id=heard.id, text=text, words=[])
    assert stored is not None
    return live_sessions.final_event(stored)


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


async def test_refined_text_comes_in_the_history_and_live(
    session: LiveSession, alice: User
) -> None:
    """In the place of its final; who reads along gets it as a change of its own."""
    await store(session, "w0", "w1", "w2")
    await sync_to_async(live_sessions.start_live_session)(session=session)
    page = await open_captions(session, alice, "?after_seq=3")
    await page.hear("head")
    event = await refine(session, 1, "better")
    await publish(event)
    refined = await page.hear("refined")
    assert (refined["utterance"], refined["seq"], refined["text"]) == (1, 4, "better")
    late = await open_captions(session, alice)
    history = (await late.hear("history"))["events"]
    assert [(event["type"], event["seq"], event["text"]) for event in history] == [
        ("final", 1, "w0"),
        ("refined", 4, "better"),
        ("final", 3, "w2"),
    ]
    await page.leave()
    await late.leave()


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


async def test_unsharing_closes_the_socket_of_who_read_by_it_and_no_other(
    session: LiveSession, alice: User, bob: User, charlie: User
) -> None:
    stopped = await sync_to_async(share)(session, with_=bob)
    team = await sync_to_async(make_team)("Sales", charlie)
    await sync_to_async(share)(session, with_=team)
    pages = [await open_captions(session, reader) for reader in (alice, bob, charlie)]
    for page in pages:
        await page.hear("head")
    owners, readers, members = pages
    await sync_to_async(sharing.stop_sharing)(share=stopped, stopped_by=alice)
    assert (await readers.closing())[0] == 4404
    remove = sync_to_async(remove_member)
    await remove(team=team, person=charlie, removed_by=alice)
    assert (await members.closing())[0] == 4404
    (event,) = await store(session, "still heard")
    await publish(event)
    assert (await owners.hear("final"))["text"] == "still heard"
    for page in pages:
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


# By a link ----------------------------------------------------------------------------------------


@sync_to_async
def make_link(session: LiveSession) -> tuple[ShareLink, str]:
    return share_links.create_share_link(thing=session, hours=24, made_by=session.owner)


async def open_by_link(session: LiveSession, token: str) -> Page:
    page = Page(f"/ws/v1/live/{session.id}/captions?by=link", None)
    assert await page.connect()
    await page.say(type="link", token=token)
    return page


async def refused(page: Page) -> tuple[int, str]:
    code, error = await page.closing()
    await page.leave()
    assert error is not None
    return code, error["reason"]


async def test_who_has_the_link_reads_without_logging_in(session: LiveSession) -> None:
    await store(session, "w0")
    page = await open_by_link(session, (await make_link(session))[1])
    assert (await page.hear("ready"))["title"] == "Weekly meeting"
    assert [event["text"] for event in (await page.hear("history"))["events"]] == ["w0"]
    await publish((await store(session, "w1", first=1))[0])
    assert (await page.hear("final"))["text"] == "w1"
    await page.leave()


async def test_a_link_does_not_tell_of_the_recording(session: LiveSession) -> None:
    recording = await sync_to_async(make_recording)(session.owner)
    await LiveSession.objects.filter(id=session.id).aupdate(
        state=LiveState.ENDED, recording=recording
    )
    page = await open_by_link(session, (await make_link(session))[1])
    assert "recording" not in await page.hear("ready")
    await page.hear("head")
    await publish(ViewerEvent("closed", str(session.id), seq=1, recording=str(recording.id)))
    assert await page.hear("closed") == {"type": "closed", "session": str(session.id), "seq": 1}
    await page.leave()


async def test_before_its_link_a_socket_gets_nothing(session: LiveSession) -> None:
    page = Page(f"/ws/v1/live/{session.id}/captions?by=link", None)
    await page.connect()
    await page.say(type="refetch", after_seq=0)
    assert (await refused(page))[0] == 4400


async def test_a_link_that_is_not_shown_in_time_closes(
    session: LiveSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(captions, "LINK_TIMEOUT_S", 0.05)
    page = Page(f"/ws/v1/live/{session.id}/captions?by=link", None)
    await page.connect()
    assert (await refused(page))[0] == 4401


async def test_a_wrong_link_is_refused(session: LiveSession) -> None:
    page = await open_by_link(session, "wrong")
    assert await refused(page) == (
        4404,
        "This link leads nowhere. Perhaps a part of its address is missing.",
    )


async def test_a_link_opens_no_other_session(session: LiveSession, alice: User) -> None:
    other = await sync_to_async(make_session)(alice)
    page = await open_by_link(other, (await make_link(session))[1])
    assert (await refused(page))[0] == 4404


async def test_a_log_in_is_no_link(session: LiveSession, alice: User) -> None:
    page = await open_captions(session, alice, "?by=link")
    await page.say(type="link", token="")
    assert (await refused(page))[0] == 4400


async def test_withdrawing_a_link_closes_its_sockets_and_no_others(
    session: LiveSession, alice: User
) -> None:
    link, token = await make_link(session)
    guest = await open_by_link(session, token)
    owner = await open_captions(session, alice)
    other = await open_by_link(session, (await make_link(session))[1])
    for page in (guest, owner, other):
        await page.hear("head")
    await sync_to_async(share_links.revoke_share_link)(link=link, revoked_by=session.owner)
    assert await refused(guest) == (4404, "This link was withdrawn by the person who made it.")
    await publish((await store(session, "w0"))[0])
    for page in (owner, other):
        assert (await page.hear("final"))["text"] == "w0"
        await page.leave()


async def test_a_link_that_expires_closes_its_sockets_in_that_moment(
    session: LiveSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(border, "RIGHTS_CHECK_S", 3600)
    link, token = await make_link(session)
    link.expires_at = timezone.now() + timedelta(seconds=1)
    await link.asave()
    page = await open_by_link(session, token)
    assert await refused(page) == (4404, "This link has expired.")
    assert timezone.now() >= link.expires_at


async def test_a_link_ends_when_its_maker_is_disabled(session: LiveSession, alice: User) -> None:
    page = await open_by_link(session, (await make_link(session))[1])
    await page.hear("head")
    alice.is_active = False
    await sync_to_async(alice.save)()
    assert (await refused(page))[0] == 4404


async def test_a_link_is_for_reading_alone(session: LiveSession) -> None:
    page = await open_by_link(session, (await make_link(session))[1])
    await page.hear("head")
    await page.say(type="stop", sample=0)
    assert (await refused(page))[0] == 4400


# How many read ------------------------------------------------------------------------------------


async def test_the_speaker_is_told_how_many_read(
    session: LiveSession, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "TICK_S", 0.1)
    speaker = await open_captions(session, alice, "?as=speaker")
    assert (await speaker.hear("readers"))["count"] == 0
    page = await open_captions(session, alice)
    guest = await open_by_link(session, (await make_link(session))[1])
    await speaker.hear("readers", lambda event: event["count"] == 2)
    assert await sync_to_async(count_readers)([str(session.id), "another"]) == [2, 0]
    await guest.leave()
    await page.leave()
    await speaker.hear("readers", lambda event: event["count"] == 0)
    await speaker.leave()


async def test_only_the_owner_is_the_speaker(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "TICK_S", 0.1)
    session = await sync_to_async(make_session)(alice, visibility=Visibility.ORGANISATION)
    speaker = await open_captions(session, alice, "?as=speaker")
    page = await open_captions(session, bob, "?as=speaker")
    await speaker.hear("readers", lambda event: event["count"] == 1)
    await page.leave()
    await speaker.leave()


async def test_readers_of_a_dead_process_run_out(session: LiveSession) -> None:
    key = readers_key(str(session.id))
    async with servers() as (broker, _):
        await broker.zadd(key, {"gone": now_ms() - 1, "here": now_ms() + 60_000})
        assert await sync_to_async(count_readers)([str(session.id)]) == [1]
        await broker.delete(key)
