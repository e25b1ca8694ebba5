"""REST v1: lists of recordings and one of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks
from pytest_django.fixtures import Settings

from tests.fakes.recordings import make_recording
from transcription.models import Recording, RecordingSource, RecordingState, Upload
from transcription.queue import Task
from transcription.services import sharing
from webapp.accounts.models import ApiToken, Scope, Team, User

pytestmark = pytest.mark.django_db

ClientOf = Callable[[User | None], Client]
LIST = "/api/v1/recordings"


def titles(response: Any) -> list[str]:
    assert response.status_code == 200, response.content
    return [item["title"] for item in response.json()["items"]]


def patch(client: Client, recording: Recording, change: Any, **arguments: Any) -> Any:
    return client.patch(
        f"{LIST}/{recording.id}", change, content_type="application/json", **arguments
    )


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
        {"created_from": "0.5"},
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


def test_a_title_is_changed(client_of: ClientOf, alice: User) -> None:
    recording = make_recording(alice)
    response = patch(client_of(alice), recording, {"title": " A  new\ttitle "})
    assert response.status_code == 200
    assert response.json()["title"] == "A new title"
    assert Recording.objects.get().title == "A new title"


def test_an_editor_changes_the_title_and_no_more(
    client_of: ClientOf, alice: User, bob: User, charlie: User
) -> None:
    recording = make_recording(alice)
    sharing.share_with(thing=recording, sharer=alice, with_=bob, can_edit=True)
    sharing.share_with(thing=recording, sharer=alice, with_=charlie, can_edit=False)
    assert patch(client_of(bob), recording, {"title": "Edited"}).status_code == 200
    for change in ({"is_organisation_wide": True}, {"expires_at": None}, {"team": None}):
        assert patch(client_of(bob), recording, change).status_code == 404
    assert patch(client_of(charlie), recording, {"title": "Mine"}).status_code == 404
    assert client_of(bob).delete(f"{LIST}/{recording.id}").status_code == 404


def test_the_owner_says_who_reads_and_until_when(client_of: ClientOf, alice: User) -> None:
    recording = make_recording(alice)
    team = Team.objects.create(name="Sales")
    team.members.add(alice)
    until = (timezone.now() + timedelta(days=9)).isoformat()
    change = {"is_organisation_wide": True, "team": team.pk, "expires_at": until}
    body = patch(client_of(alice), recording, change).json()
    assert body["is_organisation_wide"] is True
    assert body["team"] == team.pk
    recording.refresh_from_db()
    assert recording.expires_at is not None
    assert recording.team == team
    body = patch(client_of(alice), recording, {"team": None, "expires_at": None}).json()
    assert (body["team"], body["expires_at"]) == (None, None)


@pytest.mark.parametrize(
    "change",
    [
        {"title": ""},
        {"title": "\u200b"},
        {"title": "a\0b"},
        {"title": "x" * 301},
        {"team": 12345},
        {"expires_at": "2020-01-01T00:00:00Z"},
        {"expires_at": "tomorrow"},
        {"expires_at": 4102444800},
        "no object",
    ],
)
def test_a_change_that_cannot_be_changes_nothing(
    client_of: ClientOf, alice: User, change: Any
) -> None:
    recording = make_recording(alice)
    response = patch(client_of(alice), recording, change)
    assert response.status_code == 400
    assert response["Content-Type"] == "application/problem+json"
    recording.refresh_from_db()
    assert (recording.title, recording.team, recording.expires_at) == ("Budget meeting", None, None)


def test_an_edit_of_something_that_has_changed_is_refused(client_of: ClientOf, alice: User) -> None:
    recording, client = make_recording(alice), client_of(alice)
    read = client.get(f"{LIST}/{recording.id}")
    known = {"If-Match": read["ETag"]}
    first = patch(client, recording, {"title": "First"}, headers=known)
    assert first.status_code == 200
    assert first["ETag"] != read["ETag"]
    second = patch(client, recording, {"title": "Second"}, headers=known)
    assert second.status_code == 412
    assert second.json()["code"] == "changed_meanwhile"
    assert client.delete(f"{LIST}/{recording.id}", headers=known).status_code == 412
    assert Recording.objects.get().title == "First"
    assert patch(client, recording, {"title": "Any"}, headers={"If-Match": "*"}).status_code == 200


def test_who_has_it_already_gets_304(client_of: ClientOf, alice: User) -> None:
    recording, client = make_recording(alice), client_of(alice)
    tag = client.get(f"{LIST}/{recording.id}")["ETag"]
    again = client.get(f"{LIST}/{recording.id}", headers={"If-None-Match": tag})
    assert again.status_code == 304
    assert again.content == b""


def test_deleted_is_in_the_trash_and_comes_back(client_of: ClientOf, alice: User) -> None:
    recording, client = make_recording(alice), client_of(alice)
    assert client.delete(f"{LIST}/{recording.id}").status_code == 204
    assert client.get(f"{LIST}/{recording.id}").status_code == 404
    assert titles(client.get(f"{LIST}/trash")) == ["Budget meeting"]
    restored = client.post(f"{LIST}/{recording.id}/restore")
    assert restored.status_code == 200
    assert titles(client.get(LIST)) == ["Budget meeting"]
    assert client.post(f"{LIST}/{recording.id}/restore").status_code == 404


def test_a_held_recording_is_not_deleted(client_of: ClientOf, alice: User) -> None:
    recording = make_recording(alice, is_held=True)
    response = client_of(alice).delete(f"{LIST}/{recording.id}")
    assert response.status_code == 409
    assert Recording.objects.get().trashed_at is None


def test_a_stranger_changes_and_deletes_nothing(
    client_of: ClientOf, alice: User, charlie: User
) -> None:
    recording, stranger = make_recording(alice), client_of(charlie)
    assert patch(stranger, recording, {"title": "Mine"}).status_code == 404
    assert stranger.delete(f"{LIST}/{recording.id}").status_code == 404
    assert stranger.get(f"{LIST}/{recording.id}/media").status_code == 404


def test_a_small_file_is_taken_and_checked(
    client_of: ClientOf,
    alice: User,
    sent: list[tuple[str, ...]],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    form = {"file": SimpleUploadedFile("talk.wav", b"RIFF and more"), "language": "en"}
    with django_capture_on_commit_callbacks(execute=True):
        response = client_of(alice).post(LIST, {**form, "speakers": "2"})
    assert response.status_code == 202, response.content
    body = response.json()
    assert (body["state"], body["display_name"]) == ("checking", "talk.wav")
    upload = Upload.objects.get()
    assert (upload.language, upload.speaker_count) == ("en", 2)
    assert upload.part_path.read_bytes() == b"RIFF and more"
    assert (Task.CHECK_UPLOAD.value, str(upload.id)) in sent
    assert response["Location"].endswith(f"/api/v1/uploads/{upload.id}")


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"file": SimpleUploadedFile("talk.wav", b"RIFF"), "path": "/srv/talk.wav"},
        {"file": SimpleUploadedFile("talk.wav", b"RIFF"), "language": "!"},
        {"file": SimpleUploadedFile("talk.wav", b"RIFF"), "speakers": "many"},
        {"file": "no file"},
    ],
)
def test_a_form_that_says_nothing_clear_is_refused(
    client_of: ClientOf, alice: User, form: dict[str, Any]
) -> None:
    response = client_of(alice).post(LIST, form)
    assert response.status_code == 400
    assert not Upload.objects.exists()


def test_an_empty_file_is_refused_as_audio(client_of: ClientOf, alice: User) -> None:
    response = client_of(alice).post(LIST, {"file": SimpleUploadedFile("talk.wav", b"")})
    assert response.status_code == 422
    assert not Upload.objects.exists()


def test_a_path_is_for_service_accounts_and_administrators(
    client_of: ClientOf, alice: User
) -> None:
    response = client_of(alice).post(LIST, {"path": "/srv/talk.wav"})
    assert response.status_code == 403


def test_a_file_of_a_listed_folder_is_taken_by_its_path(
    client_of: ClientOf,
    administrator: User,
    sent: list[tuple[str, ...]],
    settings: Settings,
    tmp_path: Path,
) -> None:
    (tmp_path / "talk.wav").write_bytes(b"RIFF and more")
    settings.SITE = settings.SITE.model_copy(update={"intake_folders": str(tmp_path)})
    form = {"path": str(tmp_path / "talk.wav"), "language": "en"}
    response = client_of(administrator).post(LIST, form)
    assert response.status_code == 202, response.content
    upload = Upload.objects.get()
    assert (upload.display_name, upload.length_bytes, upload.language) == ("talk.wav", 13, "en")
    assert client_of(administrator).post(LIST, {"path": "/etc/hostname"}).status_code == 400


def test_audio_is_read_in_ranges(client_of: ClientOf, alice: User) -> None:
    recording = make_recording(alice, content=b"0123456789")
    client = client_of(alice)
    response = client.get(f"{LIST}/{recording.id}/media", headers={"Range": "bytes=2-4"})
    assert response.status_code == 206
    assert response["Content-Range"] == "bytes 2-4/10"
    assert response["Content-Type"] == "audio/mpeg"


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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"titel": "A"}, "titel is not known here."),
        ({"title": 7}, "title should be a valid string."),
        ({"expires_at": 7}, "expires_at: a time is written as 2027-03-04T09:00:00Z."),
        ([], "The body should be a JSON object."),
    ],
)
def test_a_body_that_does_not_fit_is_refused_in_our_words(
    client_of: ClientOf, alice: User, change: Any, said: str
) -> None:
    body = patch(client_of(alice), make_recording(alice), change).json()
    assert (body["code"], body["title"], body["detail"]) == ("invalid_input", "Invalid input", said)


def test_a_parameter_that_does_not_fit_is_named(client_of: ClientOf, alice: User) -> None:
    body = client_of(alice).get(LIST, {"limit": "many"}).json()
    assert body["detail"].startswith("limit should be ")
    assert body["title"] == "Invalid input"
