"""Shares, the audience and administrators' openings: rows, audit and messages to open pages."""

from __future__ import annotations

import pytest
from django.db.models import QuerySet
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from tests.fakes.live import make_session
from tests.fakes.pages import make_recording
from tests.fakes.shares import make_team, share
from transcription.errors import ConflictError, InvalidInputError, NotFoundError
from transcription.models import LiveSession, LiveState, Recording, Share, Visibility
from transcription.services import live_sessions, sharing
from transcription.services.live_sessions import StoredAudio
from webapp.accounts.models import Act, AuditEntry, User

Thing = Recording | LiveSession


@pytest.fixture(params=["recording", "session"])
def thing(request: pytest.FixtureRequest, alice: User) -> Thing:
    return make_recording(alice) if request.param == "recording" else make_session(alice)


def entries() -> QuerySet[AuditEntry]:
    """Of the audit log, but for what made the thing."""
    return AuditEntry.objects.exclude(act=Act.CREATED).order_by("id")


def acts() -> list[tuple[str, object]]:
    return [(entry.act, entry.detail.get("with")) for entry in entries()]


def test_a_share_is_one_row_whose_right_may_change(
    alice: User,
    bob: User,
    thing: Thing,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    with django_capture_on_commit_callbacks() as told:
        sharing.share_with(thing=thing, sharer=alice, with_=bob, can_edit=False)
    assert told
    sharing.share_with(thing=thing, sharer=alice, with_=bob, can_edit=True)
    stored = Share.objects.get()
    assert (stored.person, stored.team, stored.can_edit) == (bob, None, True)
    assert acts() == [(Act.SHARED, bob.email)] * 2


def test_stopping_is_told_to_open_pages_and_twice_is_harmless(
    alice: User,
    bob: User,
    thing: Thing,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    stored = share(thing, with_=make_team("Sales", bob))
    with django_capture_on_commit_callbacks() as told:
        sharing.stop_sharing(share=stored, stopped_by=alice)
    assert told
    assert not Share.objects.exists()
    sharing.stop_sharing(share=stored, stopped_by=alice)
    assert acts() == [(Act.UNSHARED, "team Sales")]


def test_nothing_is_shared_with_its_owner_or_with_somebody_disabled(
    alice: User, bob: User, thing: Thing
) -> None:
    bob.is_active = False
    for person in (alice, bob):
        with pytest.raises(InvalidInputError):
            sharing.share_with(thing=thing, sharer=alice, with_=person, can_edit=False)
    assert not Share.objects.exists()
    assert not acts()


def test_the_number_of_shares_is_bounded_and_those_there_are_may_change(
    alice: User, bob: User, charlie: User, thing: Thing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "MAX_SHARES", 1)
    sharing.share_with(thing=thing, sharer=alice, with_=bob, can_edit=False)
    with pytest.raises(ConflictError, match="Share it with a team"):
        sharing.share_with(thing=thing, sharer=alice, with_=charlie, can_edit=False)
    sharing.share_with(thing=thing, sharer=alice, with_=bob, can_edit=True)
    assert Share.objects.get().can_edit


def test_the_audience_is_stored_and_told_to_open_pages(
    alice: User,
    thing: Thing,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    with django_capture_on_commit_callbacks() as told:
        sharing.set_audience(thing=thing, is_organisation_wide=True, set_by=alice)
    assert told
    thing.refresh_from_db()
    if isinstance(thing, Recording):
        assert thing.is_organisation_wide
    else:
        assert thing.visibility == Visibility.ORGANISATION
    sharing.set_audience(thing=thing, is_organisation_wide=False, set_by=alice)
    assert [act for act, _ in acts()] == [Act.SHARED, Act.UNSHARED]


def test_the_audience_of_what_was_deleted_meanwhile_is_not_found(alice: User, thing: Thing) -> None:
    type(thing).objects.all().delete()
    with pytest.raises(NotFoundError):
        sharing.set_audience(thing=thing, is_organisation_wide=True, set_by=alice)
    assert not acts()


def test_a_recording_takes_over_what_its_session_was_shared_with(
    alice: User, bob: User, sent: list[tuple[str, ...]]
) -> None:
    team = make_team("Sales", bob)
    session = make_session(alice, visibility=Visibility.PRIVATE)
    LiveSession.objects.update(state=LiveState.ENDING, team=team)
    share(session, with_=bob)
    share(session, with_=team, can_edit=True)
    audio = StoredAudio(
        duration_ms=1000,
        size_bytes=10,
        container="flac",
        codec="flac",
        media_type="audio/flac",
        player_name="source.bin",
    )
    live_sessions.finish_live_session(session_id=session.id, audio=audio)
    recording = Recording.objects.get()
    shares = recording.shares.values_list("person", "team", "can_edit")
    assert set(shares) == {(bob.pk, None, False), (None, team.pk, True)}
    assert recording.team == team


def test_an_opening_has_a_reason_an_end_and_an_audit_entry(
    administrator: User, thing: Thing
) -> None:
    with pytest.raises(InvalidInputError, match="why"):
        sharing.open_as_administrator(thing=thing, administrator=administrator, reason=" \n ")
    opening = sharing.open_as_administrator(
        thing=thing, administrator=administrator, reason="The owner asked\nfor help"
    )
    assert opening.reason == "The owner asked for help"
    assert opening.closes_at - opening.opened_at == sharing.OPENED_FOR
    entry = entries().get()
    assert (entry.act, entry.actor, entry.subject_id) == (Act.OPENED, administrator, str(thing.pk))
    assert entry.detail == {"reason": "The owner asked for help"}


def test_closing_ends_it_at_once_and_keeps_the_record(
    administrator: User,
    thing: Thing,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    sharing.open_as_administrator(thing=thing, administrator=administrator, reason="A look")
    with django_capture_on_commit_callbacks() as told:
        sharing.close_opened(thing=thing, administrator=administrator)
    assert told
    assert thing.openings.get().closes_at <= timezone.now()
