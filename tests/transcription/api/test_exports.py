"""Downloads: the revision that the page shows, under the recording's own name."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import quote

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from tests.fakes.recordings import claim_of, make_job, make_recording, progress
from transcription.models import Recording, RevisionKind, TranscriptRevision
from transcription.services import jobs
from webapp.accounts.models import User

ClientOf = Callable[[User | None], Client]
EXTENSIONS = ("txt", "srt", "vtt", "json")


@pytest.fixture
def recording(alice: User) -> Recording:
    job = make_job(alice, title="Budget")
    claim = claim_of()
    jobs.store_progress(claim=claim, progress=progress("Good", "morning."))
    jobs.finish_job(claim=claim, model_name="scripted")
    return Recording.objects.get(id=job.recording_id)


def address_of(recording: Recording, extension: str) -> str:
    return reverse("recording_export", args=[recording.id, extension])


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_a_transcript_is_downloaded(
    extension: str, alice: User, client_of: ClientOf, recording: Recording
) -> None:
    response = client_of(alice).get(address_of(recording, extension))
    text = response.content.decode()
    assert response.status_code == HTTPStatus.OK
    assert response["Content-Disposition"] == f'attachment; filename="Budget.{extension}"'
    assert response["X-Content-Type-Options"] == "nosniff"
    assert "Good" in text
    assert text.index("Good") < text.index("morning.")
    if extension == "json":
        assert [one["start_ms"] for one in json.loads(text)["segments"]] == [0, 1000]


def test_speakers_are_downloaded_under_their_names(
    alice: User, client_of: ClientOf, recording: Recording
) -> None:
    revision = recording.revisions.get(kind=RevisionKind.REFINED)
    revision.segments.update(speaker="1")
    recording.speaker_names.create(label="1", name="Zoë")
    for extension, written in (
        ("txt", "Zoë: Good"),
        ("srt", "Zoë: Good"),
        ("vtt", "<v Zoë>Good"),
        ("json", '"speaker_name": "Zoë"'),
    ):
        assert written in client_of(alice).get(address_of(recording, extension)).content.decode()


def test_no_subtitle_is_shown_after_the_end_of_the_recording(
    alice: User, client_of: ClientOf, recording: Recording
) -> None:
    Recording.objects.update(duration_ms=1950)
    text = client_of(alice).get(address_of(recording, "vtt")).content.decode()
    assert "--> 00:00:01.950" in text


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_an_empty_transcript_is_a_valid_download(
    extension: str, alice: User, client_of: ClientOf
) -> None:
    response = client_of(alice).get(address_of(make_recording(alice), extension))
    assert response.status_code == HTTPStatus.OK
    if extension == "vtt":
        assert response.content.startswith(b"WEBVTT")
    if extension == "json":
        assert response.json()["segments"] == []


def test_a_persons_edits_are_what_is_downloaded(
    alice: User, client_of: ClientOf, recording: Recording
) -> None:
    edited = TranscriptRevision.objects.create(
        recording=recording, number=3, kind=RevisionKind.EDITED, is_complete=True
    )
    edited.segments.create(index=0, start_ms=0, end_ms=900, text="Corrected.")
    Recording.objects.update(current_revision=edited)
    for extension in EXTENSIONS:
        text = client_of(alice).get(address_of(recording, extension)).content.decode()
        assert "Corrected." in text
        assert "morning" not in text


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("会议 五月", "会议 五月.txt"),
        ("Q3/Q4 plan", "Q3-Q4 plan.txt"),
        ("👩\u200d👧 rapport été", "👩\u200d👧 rapport été.txt"),
    ],
)
def test_names_of_any_script_survive(
    title: str, name: str, alice: User, client_of: ClientOf, recording: Recording
) -> None:
    Recording.objects.update(title=title)
    header = client_of(alice).get(address_of(recording, "txt"))["Content-Disposition"]
    assert quote(name) in header or f'filename="{name}"' in header


@pytest.mark.parametrize("title", ["a\r\nSet-Cookie: x=1", "..", 'quo"te', "\u202egpj"])
def test_no_name_breaks_the_header(
    title: str, alice: User, client_of: ClientOf, recording: Recording
) -> None:
    Recording.objects.update(title=title)
    response = client_of(alice).get(address_of(recording, "txt"))
    assert response.status_code == HTTPStatus.OK
    assert response["Content-Disposition"].startswith("attachment; filename")
    assert "\n" not in response["Content-Disposition"]
    assert "x" not in response.cookies


def test_only_those_who_may_read_may_download(
    charlie: User, administrator: User, client_of: ClientOf, recording: Recording
) -> None:
    address = address_of(recording, "txt")
    assert client_of(None).get(address).status_code == HTTPStatus.UNAUTHORIZED
    page = {"Accept": "text/html"}
    assert client_of(None).get(address, headers=page).status_code == HTTPStatus.FOUND
    for stranger in (charlie, administrator):
        assert client_of(stranger).get(address).status_code == HTTPStatus.NOT_FOUND
    Recording.objects.update(is_organisation_wide=True)
    assert client_of(charlie).get(address).status_code == HTTPStatus.OK
    Recording.objects.update(is_organisation_wide=False)
    assert client_of(charlie).get(address).status_code == HTTPStatus.NOT_FOUND


def test_unknown_formats_are_not_found(
    alice: User, client_of: ClientOf, recording: Recording
) -> None:
    assert client_of(alice).get(address_of(recording, "exe")).status_code == HTTPStatus.NOT_FOUND


def test_queries(
    alice: User,
    client_of: ClientOf,
    recording: Recording,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    client = client_of(alice)
    client.get(address_of(recording, "txt"))  # told to the audit log
    # session, person, recording, whether it is told already, revision, segments, names
    with django_assert_max_num_queries(7):
        client.get(address_of(recording, "txt"))
