"""What takes a right away closes what was open by it within seconds, by the message that says so:
the check every half minute is far away here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from tests.fakes.live import Page, make_session
from tests.fakes.pages import make_recording
from tests.fakes.people import PASSWORD, make_person
from tests.fakes.shares import make_team, share
from transcription.models import LiveSession, Recording
from transcription.realtime import border
from transcription.services import sharing, trash
from webapp.accounts.models import Role, Team, User
from webapp.accounts.teams import delete_team, remove_member

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(border, "RIGHTS_SETTLE_S", 0.0)


@pytest.fixture
def recording(transactional_db: None, alice: User) -> Recording:
    """That was a live session."""
    recording = make_recording(alice)
    session = make_session(alice)
    LiveSession.objects.filter(id=session.id).update(id=recording.id, recording=recording)
    return recording


async def open_both(person: User, recording: Recording) -> list[Page]:
    """The page of the recording, and its captions."""
    client = Client()
    assert await sync_to_async(client.login)(email=person.email, password=PASSWORD)
    pages = []
    for path, welcome in (
        (f"/ws/v1/recordings/{recording.id}", "changed"),
        (f"/ws/v1/live/{recording.id}/captions", "head"),
    ):
        page = Page(path, client)
        assert await page.connect()
        await page.hear(welcome)
        pages.append(page)
    return pages


async def assert_closed(pages: list[Page], code: int) -> None:
    for page in pages:
        assert (await page.closing())[0] == code
        await page.leave()


def stop_sharing(recording: Recording, reader: User) -> None:
    stored = recording.shares.get(person=reader)
    sharing.stop_sharing(share=stored, stopped_by=recording.owner)


def leave_team(recording: Recording, reader: User) -> None:
    remove_member(team=Team.objects.get(), person=reader, removed_by=recording.owner)


def end_team(recording: Recording, reader: User) -> None:
    delete_team(team=Team.objects.get(), deleted_by=recording.owner)


def put_in_trash(recording: Recording, reader: User) -> None:
    trash.trash_recording(recording=recording, trashed_by=recording.owner)


def delete(recording: Recording, reader: User) -> None:
    trash.delete_for_ever(recording=recording, deleted_by=recording.owner)


def change_password(recording: Recording, reader: User) -> None:
    reader.set_password("another horse, another battery")
    reader.save()


def disable(recording: Recording, reader: User) -> None:
    reader.is_active = False
    reader.save()


@pytest.mark.parametrize(
    ("act", "by_team", "code"),
    [
        (stop_sharing, False, 4404),
        (leave_team, True, 4404),
        (end_team, True, 4404),
        (put_in_trash, False, 4404),
        (delete, False, 4404),
        (change_password, False, 4401),
        (disable, False, 4401),
    ],
)
async def test_who_may_no_longer_read_is_sent_away(
    act: Callable[[Recording, User], None],
    by_team: bool,
    code: int,
    recording: Recording,
    bob: User,
) -> None:
    with_: Any = await sync_to_async(make_team)("Sales", bob) if by_team else bob
    await sync_to_async(share)(recording, with_=with_)
    pages = await open_both(bob, recording)
    await sync_to_async(act)(recording, bob)
    await assert_closed(pages, code)


def close_it(recording: Recording, administrator: User) -> None:
    sharing.close_opened(thing=recording, administrator=administrator)


def demote(recording: Recording, administrator: User) -> None:
    administrator.role = Role.STAFF
    administrator.save()


@pytest.mark.parametrize("act", [close_it, demote])
async def test_an_administrator_s_opening_ends_on_open_pages_too(
    act: Callable[[Recording, User], None], recording: Recording, administrator: User
) -> None:
    await sync_to_async(sharing.open_as_administrator)(
        thing=recording, administrator=administrator, reason="A look at the text"
    )
    pages = await open_both(administrator, recording)
    await sync_to_async(act)(recording, administrator)
    await assert_closed(pages, 4404)


async def test_an_editor_who_may_only_read_from_now_on_stays(
    recording: Recording, bob: User, transactional_db: None
) -> None:
    dora = await sync_to_async(make_person)("Dora")
    for reader in (bob, dora):
        await sync_to_async(share)(recording, with_=reader, can_edit=True)
    left, stayed = await open_both(bob, recording), await open_both(dora, recording)
    await sync_to_async(sharing.share_with)(
        thing=recording, sharer=recording.owner, with_=dora, can_edit=False
    )
    await sync_to_async(stop_sharing)(recording, bob)
    await assert_closed(left, 4404)
    for page in stayed:
        await page.leave()
        assert page.socket.output_queue.empty()
