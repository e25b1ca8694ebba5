from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.fakes.live import make_session
from tests.fakes.pages import make_recording
from tests.fakes.shares import make_team, open_for, share
from transcription import selectors
from transcription.errors import NotFoundError
from transcription.models import LiveSession, Recording, ShareLink, Visibility
from webapp.accounts.models import Role, User

READ = selectors.access_recording_by_id
EDIT = selectors.access_editable_recording_by_id
OWN = selectors.access_own_recording_by_id
READ_LIVE = selectors.access_live_session_by_id
OWN_LIVE = selectors.access_own_live_session_by_id


@pytest.fixture
def recording(alice: User) -> Recording:
    return make_recording(alice)


@pytest.fixture
def session(alice: User) -> LiveSession:
    return make_session(alice)


def may(access: Callable[..., Any], user: User | AnonymousUser, thing: Any) -> bool:
    try:
        return bool(access(user, thing.id).id == thing.id)
    except NotFoundError:
        return False


def rights(user: User | AnonymousUser, recording: Recording) -> tuple[bool, bool, bool]:
    """Whether they may read, edit, and do what is the owner's."""
    return may(READ, user, recording), may(EDIT, user, recording), may(OWN, user, recording)


def test_owner_has_every_right_and_a_stranger_none(
    alice: User, charlie: User, recording: Recording
) -> None:
    assert rights(alice, recording) == (True, True, True)
    assert rights(charlie, recording) == (False, False, False)
    assert rights(AnonymousUser(), recording) == (False, False, False)


def test_reader_reads_and_editor_edits(bob: User, charlie: User, recording: Recording) -> None:
    share(recording, with_=bob)
    share(recording, with_=charlie, can_edit=True)
    assert rights(bob, recording) == (True, False, False)
    assert rights(charlie, recording) == (True, True, False)


def test_a_team_s_members_have_what_is_shared_with_it(
    bob: User, charlie: User, recording: Recording
) -> None:
    team = make_team("Sales", bob)
    share(recording, with_=team, can_edit=True)
    assert rights(bob, recording) == (True, True, False)
    assert rights(charlie, recording) == (False, False, False)
    team.members.remove(bob)
    assert rights(bob, recording) == (False, False, False)


def test_the_wider_of_two_shares_counts_and_the_thing_is_listed_once(
    bob: User, recording: Recording
) -> None:
    share(recording, with_=bob)
    share(recording, with_=make_team("Sales", bob), can_edit=True)
    share(recording, with_=make_team("Support", bob))
    assert rights(bob, recording) == (True, True, False)
    assert list(selectors.recordings_visible_to(bob)) == [recording]


def test_what_everybody_may_read_nobody_else_may_edit(alice: User, bob: User) -> None:
    wide = make_recording(alice, is_organisation_wide=True)
    assert rights(bob, wide) == (True, False, False)


def test_a_share_of_one_thing_opens_no_other(
    alice: User, bob: User, recording: Recording, session: LiveSession
) -> None:
    other = make_recording(alice, "Other")
    share(recording, with_=bob, can_edit=True)
    share(session, with_=bob, can_edit=True)
    assert rights(bob, other) == (False, False, False)
    assert not may(READ_LIVE, bob, make_session(alice, title="Other"))


@pytest.mark.parametrize("who", ["alice", "bob", "administrator"])
def test_disabled_people_have_no_right(
    who: str, request: pytest.FixtureRequest, bob: User, recording: Recording, session: LiveSession
) -> None:
    share(recording, with_=bob, can_edit=True)
    share(session, with_=bob, can_edit=True)
    person: User = request.getfixturevalue(who)
    if who == "administrator":
        open_for(person, recording)
        open_for(person, session)
    person.is_active = False
    person.save()
    assert rights(person, recording) == (False, False, False)
    assert not may(READ_LIVE, person, session)
    assert not may(OWN_LIVE, person, session)
    assert not selectors.recordings_visible_to(person).exists()
    assert not selectors.live_sessions_visible_to(person).exists()


# Administrators -----------------------------------------------------------------------------------


def test_administrator_reads_nothing_of_others_by_role(
    administrator: User, recording: Recording, session: LiveSession
) -> None:
    assert rights(administrator, recording) == (False, False, False)
    assert not may(READ_LIVE, administrator, session)
    assert recording in selectors.recordings_administered_by(administrator)


def test_administrator_reads_what_they_opened_until_it_closes(
    alice: User, administrator: User, recording: Recording, session: LiveSession
) -> None:
    for thing in (recording, session):
        open_for(administrator, thing)
    assert rights(administrator, recording) == (True, False, False)
    assert may(READ_LIVE, administrator, session)
    assert not may(OWN_LIVE, administrator, session)
    assert rights(administrator, make_recording(alice, "Other")) == (False, False, False)
    recording.openings.update(closes_at=timezone.now())
    session.openings.update(closes_at=timezone.now())
    assert rights(administrator, recording) == (False, False, False)
    assert not may(READ_LIVE, administrator, session)


def test_opened_things_are_not_listed_among_their_own(
    administrator: User, recording: Recording, session: LiveSession
) -> None:
    open_for(administrator, recording)
    open_for(administrator, session)
    assert not selectors.recordings_visible_to(administrator).exists()
    assert not selectors.live_sessions_visible_to(administrator).exists()


def test_an_opening_ends_with_the_role_and_serves_nobody_else(
    bob: User, administrator: User, recording: Recording
) -> None:
    open_for(administrator, recording)
    assert not may(READ, bob, recording)
    administrator.role = Role.STAFF
    administrator.save()
    assert not may(READ, administrator, recording)


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_only_administrators_administer(
    who: str, request: pytest.FixtureRequest, recording: Recording, session: LiveSession
) -> None:
    person = request.getfixturevalue(who)
    with pytest.raises(NotFoundError):
        selectors.recordings_administered_by(person)
    assert not may(selectors.access_administered_recording_by_id, person, recording)
    assert not may(selectors.access_administered_live_session_by_id, person, session)


# The trash ----------------------------------------------------------------------------------------


def test_the_trash_is_its_owner_s_and_nobody_reads_in_it(
    alice: User, bob: User, administrator: User, recording: Recording
) -> None:
    share(recording, with_=bob, can_edit=True)
    open_for(administrator, recording)
    assert not may(selectors.access_trashed_recording_by_id, alice, recording)
    Recording.objects.update(trashed_at=timezone.now())
    for person in (alice, bob, administrator):
        assert rights(person, recording) == (False, False, False)
        assert not selectors.recordings_visible_to(person).exists()
    assert list(selectors.trashed_recordings_of(alice)) == [recording]
    assert may(selectors.access_trashed_recording_by_id, alice, recording)
    for person in (bob, administrator):
        assert not may(selectors.access_trashed_recording_by_id, person, recording)


def test_captions_go_into_the_trash_with_their_recording(
    alice: User, recording: Recording, session: LiveSession
) -> None:
    ShareLink.objects.create(
        session=session,
        sha256=ShareLink.hash_token("t"),
        expires_at=timezone.now().replace(year=9999),
    )
    session.recording = recording
    session.save()
    assert may(READ_LIVE, alice, session)
    assert selectors.access_caption_link_by_token("t").session == session
    Recording.objects.update(trashed_at=timezone.now())
    assert not may(READ_LIVE, alice, session)
    assert not may(OWN_LIVE, alice, session)
    with pytest.raises(NotFoundError, match="was deleted"):
        selectors.access_caption_link_by_token("t")


# Live sessions ------------------------------------------------------------------------------------


def test_captions_are_read_by_who_shares_them_and_captured_by_the_owner(
    alice: User, bob: User, charlie: User, session: LiveSession
) -> None:
    share(session, with_=make_team("Sales", bob), can_edit=True)
    assert may(OWN_LIVE, alice, session)
    assert may(READ_LIVE, bob, session)
    assert not may(OWN_LIVE, bob, session)
    assert not may(READ_LIVE, charlie, session)


def test_once_there_is_a_recording_its_readers_are_the_captions(
    alice: User, bob: User, charlie: User
) -> None:
    session = make_session(alice, visibility=Visibility.ORGANISATION)
    share(session, with_=bob)
    assert may(READ_LIVE, bob, session)
    assert may(READ_LIVE, charlie, session)
    session.recording = make_recording(alice)
    session.save()
    assert may(READ_LIVE, alice, session)
    assert not may(READ_LIVE, bob, session)
    assert not may(READ_LIVE, charlie, session)
    share(session.recording, with_=bob)
    assert may(READ_LIVE, bob, session)
    assert not may(READ_LIVE, charlie, session)


# Cost ---------------------------------------------------------------------------------------------


def test_each_list_and_each_access_is_one_query(
    alice: User,
    bob: User,
    administrator: User,
    recording: Recording,
    session: LiveSession,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    team = make_team("Sales", bob)
    for number in range(5):
        share(make_recording(alice, f"Meeting {number}"), with_=team)
        share(make_session(alice, title=f"Meeting {number}"), with_=bob)
    share(recording, with_=team, can_edit=True)
    open_for(administrator, recording)
    open_for(administrator, session)
    for query in (
        lambda: [shown.owner.name for shown in selectors.recordings_visible_to(bob)],
        lambda: [shown.owner.name for shown in selectors.live_sessions_visible_to(bob)],
        lambda: READ(bob, recording.id).owner.name,
        lambda: EDIT(bob, recording.id).owner.name,
        lambda: READ(administrator, recording.id).owner.name,
        lambda: READ_LIVE(administrator, session.id).owner.name,
    ):
        with django_assert_num_queries(1):
            assert query()  # type: ignore[no-untyped-call]
