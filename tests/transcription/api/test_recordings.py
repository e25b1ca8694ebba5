"""REST v1: lists of recordings and one of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.fakes.recordings import make_recording
from transcription.models import Recording, RecordingSource, RecordingState
from webapp.accounts.models import ApiToken, Scope, User

pytestmark = pytest.mark.django_db

ClientOf = Callable[[User | None], Client]
LIST = "/api/v1/recordings"


def titles(response: Any) -> list[str]:
    assert response.status_code == 200, response.content
    return [item["title"] for item in response.json()["items"]]


def test_one_recording_is_told_as_it_is(client_of: ClientOf, alice: User) -> None:
    recording = make_recording(alice, problem_code="cancelled", problem="It was cancelled.")
    body = client_of(alice).get(f"{LIST}/{recording.id}").json()
    assert body["id"] == str(recording.id)
    assert body["owner"] == {"id": alice.pk, "name": "Alice"}
    assert body["problem"] == {"code": "cancelled", "sentence": "It was cancelled."}
    assert body["revision"] is None
    assert body["has_audio"] is True


def test_stranger_gets_404_and_an_empty_list(
    client_of: ClientOf, alice: User, charlie: User
) -> None:
    recording = make_recording(alice)
    stranger = client_of(charlie)
    response = stranger.get(f"{LIST}/{recording.id}")
    assert response.status_code == 404
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["code"] == "not_found"
    assert titles(stranger.get(LIST)) == []


def test_anonymous_is_refused(client_of: ClientOf, alice: User) -> None:
    recording = make_recording(alice)
    for path in (LIST, f"{LIST}/{recording.id}"):
        response = client_of(None).get(path)
        assert response.status_code == 401
        assert response["WWW-Authenticate"] == "Bearer"
        assert response.json()["code"] == "not_authenticated"


def test_a_token_reads_only_with_the_scope(client_of: ClientOf, alice: User) -> None:
    make_recording(alice)
    for scope, status in ((Scope.RECORDINGS_READ, 200), (Scope.LIVE_READ, 403)):
        _, secret = ApiToken.issue(user=alice, name="tool", scopes=[scope])
        response = client_of(None).get(LIST, headers={"Authorization": f"Bearer {secret}"})
        assert response.status_code == status


def test_pages_go_through_everything_once_also_where_times_are_equal(
    client_of: ClientOf, alice: User
) -> None:
    at = timezone.now()
    made = [make_recording(alice, title=f"{n}", created_at=at) for n in range(5)]
    client, seen, cursor = client_of(alice), [], ""
    for _ in range(3):
        body = client.get(LIST, {"limit": 2, "cursor": cursor}).json()
        seen += [item["id"] for item in body["items"]]
        cursor = body["next_cursor"]
    assert cursor is None
    assert sorted(seen) == sorted(str(recording.id) for recording in made)


def test_what_is_deleted_between_two_pages_hides_nothing(client_of: ClientOf, alice: User) -> None:
    now = timezone.now()
    for number in range(4):
        make_recording(alice, title=str(number), created_at=now - timedelta(minutes=number))
    client = client_of(alice)
    first = client.get(LIST, {"limit": 2}).json()
    Recording.objects.filter(title="0").delete()
    rest = client.get(LIST, {"limit": 2, "cursor": first["next_cursor"]})
    assert titles(rest) == ["2", "3"]


def test_filters(client_of: ClientOf, alice: User, bob: User) -> None:
    now = timezone.now()
    make_recording(alice, title="Budget", language="en", state=RecordingState.READY)
    make_recording(alice, title="Plan", source=RecordingSource.LIVE, language="de")
    make_recording(
        bob, title="Bob's", is_organisation_wide=True, created_at=now - timedelta(days=3)
    )
    client = client_of(alice)
    assert titles(client.get(LIST, {"q": "udg"})) == ["Budget"]
    assert titles(client.get(LIST, {"state": "ready"})) == ["Budget"]
    assert titles(client.get(LIST, {"source": "live"})) == ["Plan"]
    assert titles(client.get(LIST, {"language": "de"})) == ["Plan"]
    assert titles(client.get(LIST, {"owner": "others"})) == ["Bob's"]
    assert titles(client.get(LIST, {"owner": "me"})) == ["Plan", "Budget"]
    day_ago = (now - timedelta(days=1)).isoformat()
    assert titles(client.get(LIST, {"created_before": day_ago})) == ["Bob's"]
    assert titles(client.get(LIST, {"created_from": day_ago})) == ["Plan", "Budget"]


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "0"},
        {"limit": "201"},
        {"cursor": "abc"},
        {"cursor": "WyJub3ciLCJ4Il0"},
        {"state": "asleep"},
        {"created_from": "yesterday"},
        {"created_from": "2026-01-01T00:00:00"},
        {"q": "a\0b"},
        {"q": "x" * 201},
    ],
)
def test_bad_input_is_refused_with_a_sentence(
    client_of: ClientOf, alice: User, query: dict[str, str]
) -> None:
    response = client_of(alice).get(LIST, query)
    assert response.status_code == 400
    assert response.json()["code"] == "invalid_input"


def test_another_method_gets_405_as_problem_json(client_of: ClientOf, alice: User) -> None:
    recording = make_recording(alice)
    response = client_of(alice).post(f"{LIST}/{recording.id}")
    assert response.status_code == 405
    assert "GET" in response["Allow"]
    assert response.json()["code"] == "method_not_allowed"


def test_a_list_takes_the_same_queries_however_long_it_is(
    client_of: ClientOf, alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(12):
        make_recording(alice, title=str(number))
    client = client_of(alice)
    with django_assert_num_queries(3):  # the session, the person, the recordings
        assert len(titles(client.get(LIST))) == 12
