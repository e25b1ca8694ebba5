"""The trash of a person: nobody else's business."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.fakes.recordings import make_recording
from transcription.models import Recording, RetentionPolicy
from transcription.services import trash
from webapp.accounts.models import User

ClientOf = Callable[[User | None], Client]


@pytest.fixture
def trashed(alice: User) -> Recording:
    recording = make_recording(alice, title="Weekly <b>", is_organisation_wide=True)
    return trash.trash_recording(recording=recording, trashed_by=alice)


def addresses(recording: Recording) -> tuple[str, str]:
    return f"/trash/{recording.id}/restore/", f"/trash/{recording.id}/delete/"


def test_it_lists_what_is_there_and_when_it_goes(
    alice: User, trashed: Recording, client_of: ClientOf
) -> None:
    Recording.objects.filter(id=trashed.id).update(trashed_at=datetime(2026, 5, 1, 12, tzinfo=UTC))
    RetentionPolicy.objects.create(trash_days=10, takes_effect_at=datetime(2026, 1, 1, tzinfo=UTC))
    page = client_of(alice).get("/trash/").content.decode()
    assert "Weekly &lt;b&gt;" in page
    assert "Deleted by you" in page
    assert "Deleted for ever after 11 May 2026" in page


def test_an_empty_trash_says_so(alice: User, client_of: ClientOf) -> None:
    assert "The trash is empty" in client_of(alice).get("/trash/").content.decode()


def test_a_stranger_sees_nothing_of_it(bob: User, trashed: Recording, client_of: ClientOf) -> None:
    client = client_of(bob)
    assert "Weekly" not in client.get("/trash/").content.decode()
    for address in addresses(trashed):
        assert client.post(address).status_code == 404
    assert client.get(addresses(trashed)[1]).status_code == 404
    assert Recording.objects.get().trashed_at is not None


def test_the_anonymous_log_in_first(trashed: Recording, client_of: ClientOf) -> None:
    for address in ("/trash/", addresses(trashed)[1]):
        assert "/accounts/login/" in client_of(None).get(address)["Location"]
    for address in addresses(trashed):
        assert "/accounts/login/" in client_of(None).post(address)["Location"]


def test_acts_are_posted(alice: User, trashed: Recording, client_of: ClientOf) -> None:
    assert client_of(alice).get(addresses(trashed)[0]).status_code == 405
    assert client_of(alice).get(f"/recordings/{trashed.id}/delete/").status_code == 405


def test_restored_it_is_where_it_was(alice: User, trashed: Recording, client_of: ClientOf) -> None:
    response = client_of(alice).post(addresses(trashed)[0], follow=True)
    assert "is restored" in response.content.decode()
    assert client_of(alice).get(f"/recordings/{trashed.id}/").status_code == 200


def test_restored_from_a_policy_it_says_until_when(
    alice: User, trashed: Recording, client_of: ClientOf
) -> None:
    Recording.objects.filter(id=trashed.id).update(
        created_at=timezone.now() - timedelta(days=20), trashed_by=None
    )
    RetentionPolicy.objects.create(transcript_days=10)
    response = client_of(alice).post(addresses(trashed)[0], follow=True)
    assert "Its time had come, so it is kept until" in response.content.decode()


def test_for_ever_asks_first_and_names_the_thing(
    alice: User, trashed: Recording, client_of: ClientOf
) -> None:
    client = client_of(alice)
    asked = client.get(addresses(trashed)[1]).content.decode()
    assert "Delete “Weekly &lt;b&gt;” for ever?" in asked
    assert Recording.objects.exists()
    response = client.post(addresses(trashed)[1], follow=True)
    assert "is deleted for ever" in response.content.decode()
    assert not Recording.objects.exists()
    assert not trashed.folder.exists()


def test_what_is_held_cannot_be_deleted(
    alice: User, trashed: Recording, client_of: ClientOf
) -> None:
    Recording.objects.filter(id=trashed.id).update(is_held=True)
    client = client_of(alice)
    assert "On hold" in client.get("/trash/").content.decode()
    assert client.post(addresses(trashed)[1]).status_code == 409
    assert Recording.objects.exists()


def test_a_held_recording_is_not_moved_to_the_trash(alice: User, client_of: ClientOf) -> None:
    recording = make_recording(alice, is_held=True)
    response = client_of(alice).post(f"/recordings/{recording.id}/delete/")
    assert response.status_code == 409
    assert "on hold" in response.content.decode()


def test_the_list_needs_few_queries(
    alice: User,
    client_of: ClientOf,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for _ in range(20):
        trash.trash_recording(recording=make_recording(alice), trashed_by=alice)
    client = client_of(alice)
    with django_assert_max_num_queries(10):
        client.get("/trash/")
