"""REST v1: jobs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from tests.fakes.recordings import make_job, make_recording
from transcription.models import Job, JobState
from transcription.services import sharing
from webapp.accounts.models import User

pytestmark = pytest.mark.django_db

ClientOf = Callable[[User | None], Client]
LIST = "/api/v1/jobs"
JSON = "application/json"


@pytest.fixture(autouse=True)
def unsent(sent: list[tuple[str, ...]]) -> None:
    """Nothing reaches a queue."""


def test_a_waiting_job_tells_its_place(client_of: ClientOf, alice: User, bob: User) -> None:
    make_job(bob)
    job = make_job(alice)
    body = client_of(alice).get(f"{LIST}/{job.id}").json()
    assert (body["state"], body["queue_position"]) == ("queued", 2)
    assert body["recording"] == str(job.recording_id)


def test_only_readers_of_the_recording_see_its_jobs(
    client_of: ClientOf, alice: User, charlie: User
) -> None:
    job = make_job(alice)
    assert client_of(charlie).get(f"{LIST}/{job.id}").status_code == 404
    assert client_of(charlie).get(LIST).json()["items"] == []
    assert client_of(charlie).post(f"{LIST}/{job.id}/cancel").status_code == 404
    assert client_of(None).get(LIST).status_code == 401


def test_a_list_of_jobs_is_filtered(
    client_of: ClientOf, alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    job = make_job(alice)
    make_job(alice)
    client = client_of(alice)
    only = client.get(LIST, {"recording": str(job.recording_id)}).json()["items"]
    assert [item["id"] for item in only] == [str(job.id)]
    assert client.get(LIST, {"state": "done"}).json()["items"] == []
    with django_assert_num_queries(3):
        assert len(client.get(LIST, {"state": "queued"}).json()["items"]) == 2
    assert client.get(LIST, {"recording": "x"}).status_code == 400


def test_an_editor_cancels_and_a_reader_does_not(
    client_of: ClientOf, alice: User, bob: User, charlie: User
) -> None:
    job = make_job(alice)
    sharing.share_with(thing=job.recording, sharer=alice, with_=bob, can_edit=True)
    sharing.share_with(thing=job.recording, sharer=alice, with_=charlie, can_edit=False)
    assert client_of(charlie).post(f"{LIST}/{job.id}/cancel").status_code == 404
    response = client_of(bob).post(f"{LIST}/{job.id}/cancel")
    assert (response.status_code, response.json()["state"]) == (200, "cancelled")


def test_a_recording_is_transcribed_again_with_options(client_of: ClientOf, alice: User) -> None:
    recording = make_recording(alice)
    response = client_of(alice).post(
        f"/api/v1/recordings/{recording.id}/jobs",
        {"language": "de", "speakers": "count", "draft_only": True},
        content_type=JSON,
    )
    assert response.status_code == 201, response.content
    job = Job.objects.get()
    assert response["Location"].endswith(f"{LIST}/{job.id}")
    assert (job.language, job.is_draft_only, job.state) == ("de", True, JobState.QUEUED)
    recording.refresh_from_db()
    assert recording.finds_speakers


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ({}, ("", True, "hant", True, 3)),
        ({"draft_only": True}, ("", True, "hant", True, 3)),
        ({"language": "zh"}, ("zh", False, "hant", True, 3)),
        ({"language": ""}, ("", False, "hant", True, 3)),
        ({"chinese_script": "hans"}, ("", True, "hans", True, 3)),
        ({"chinese_script": ""}, ("", True, "", True, 3)),
        ({"speakers": "count"}, ("", True, "hant", True, None)),
        ({"speakers": ""}, ("", True, "hant", False, None)),
    ],
    ids=["nothing", "draft", "language", "any-language", "hans", "as-usual", "count", "not-apart"],
)
def test_what_is_left_out_stays_as_it_was(
    client_of: ClientOf, alice: User, asked: dict[str, object], kept: tuple[object, ...]
) -> None:
    recording = make_recording(
        alice, mixes_languages=True, chinese_script="hant", finds_speakers=True, speaker_count=3
    )
    path = f"/api/v1/recordings/{recording.id}/jobs"
    assert client_of(alice).post(path, asked, content_type=JSON).status_code == 201
    recording.refresh_from_db()
    assert kept == (
        recording.requested_language,
        recording.mixes_languages,
        recording.chinese_script,
        recording.finds_speakers,
        recording.speaker_count,
    )
    assert Job.objects.get().language == kept[0]


def test_a_second_job_at_once_is_a_conflict(client_of: ClientOf, alice: User) -> None:
    job = make_job(alice)
    path = f"/api/v1/recordings/{job.recording_id}/jobs"
    response = client_of(alice).post(path, {}, content_type=JSON)
    assert (response.status_code, response.json()["code"]) == (409, "conflict")


@pytest.mark.parametrize(
    "asked",
    [
        {"language": "??"},
        {"speakers": "99"},
        {"chinese_script": "zh"},
        {"track": 7},
        {"track": 0, "language": "en"},
    ],
    ids=str,
)
def test_options_that_cannot_be_make_no_job(
    client_of: ClientOf, alice: User, asked: dict[str, object]
) -> None:
    recording = make_recording(alice)
    path = f"/api/v1/recordings/{recording.id}/jobs"
    assert client_of(alice).post(path, asked, content_type=JSON).status_code == 400
    assert not Job.objects.exists()


def test_a_repeated_request_makes_one_job(client_of: ClientOf, alice: User) -> None:
    recording = make_recording(alice)
    path = f"/api/v1/recordings/{recording.id}/jobs"
    client, key = client_of(alice), {"Idempotency-Key": "night-run-7"}
    first = client.post(path, {"language": "en"}, content_type=JSON, headers=key)
    again = client.post(path, {"language": "en"}, content_type=JSON, headers=key)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert again["Location"] == first["Location"]
    assert again["Idempotent-Replayed"] == "true"
    assert Job.objects.count() == 1
