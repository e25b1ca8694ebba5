"""Jobs of everybody: listed without a word of what was said, stopped, and begun anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.fakes.recordings import claim_of, make_job, make_recording, progress
from transcription.models import Job, JobState, Recording
from transcription.services import jobs
from webapp.accounts.models import AuditEntry, User

ADDRESS = "/administration/jobs/"

pytestmark = pytest.mark.usefixtures("sent")


def shown(client: Client, query: str = "") -> str:
    response = client.get(ADDRESS + query)
    assert response.status_code == 200
    return response.content.decode()


def failed_job(owner: User, title: str) -> Job:
    job = make_job(owner, title=title)
    jobs.fail_attempt(
        claim=claim_of(), code="bad", problem="It cannot be decoded.", is_retryable=False
    )
    job.refresh_from_db()
    return job


def test_jobs_of_everybody_are_listed_in_their_order(
    client: Client, alice: User, bob: User
) -> None:
    make_job(alice, title="First")
    claim = claim_of()
    jobs.store_progress(claim=claim, progress=progress("A secret word."))
    make_job(bob, title="Second")
    page = shown(client)
    assert page.index(">First</a>") < page.index(">Second</a>")
    assert "Transcribing · 50 %" in page
    assert "jobs@one" in page
    assert "Next to be transcribed" in page
    assert "secret" not in page


def test_a_failed_job_says_why_and_is_begun_anew(client: Client, admin: User, alice: User) -> None:
    job = failed_job(alice, "Broken")
    assert ">Broken</a>" not in shown(client)
    page = shown(client, "?show=failed")
    assert "It cannot be decoded." in page
    response = client.post(f"{ADDRESS}{job.id}/retry/", {"show": "failed"})
    assert response["Location"] == f"{ADDRESS}?show=failed"
    again = Job.objects.exclude(pk=job.pk).get()
    assert (again.state, again.requested_by) == (JobState.QUEUED, admin)
    assert ">Broken</a>" not in shown(client, "?show=failed")
    told = AuditEntry.objects.get()
    assert (told.actor, told.act, told.subject_id) == (admin, "job_asked", str(job.recording_id))


def test_a_job_is_stopped(client: Client, admin: User, alice: User) -> None:
    job = make_job(alice, title="Long")
    page = client.post(f"{ADDRESS}{job.id}/cancel/", follow=True).content.decode()
    assert "The transcription of “Long” stops." in page
    assert Job.objects.get().state == JobState.CANCELLED
    assert AuditEntry.objects.get().act == "job_ended"
    assert "Cancelled" in shown(client, "?show=ended")


def test_what_cannot_be_done_is_not_offered_and_refused(client: Client, alice: User) -> None:
    job = failed_job(alice, "Broken")
    jobs.retry_job(recording=job.recording, requested_by=alice)
    assert client.post(f"{ADDRESS}{job.id}/retry/").status_code == 409
    assert "Transcribe again" not in shown(client, "?show=ended")
    Job.objects.filter(state=JobState.QUEUED).delete()
    assert "Transcribe again" in shown(client, "?show=ended")
    Recording.objects.update(audio_removed_at=timezone.now())
    assert "Transcribe again" not in shown(client, "?show=ended")
    Recording.objects.update(audio_removed_at=None, trashed_at=timezone.now())
    assert "Transcribe again" not in shown(client, "?show=ended")
    assert client.post(f"{ADDRESS}{job.id}/retry/").status_code == 409
    nobody = "00000000-0000-4000-8000-000000000000"
    assert client.post(f"{ADDRESS}{nobody}/cancel/").status_code == 404


def test_an_empty_list_and_an_unknown_view_are_said_in_words(client: Client, admin: User) -> None:
    assert "Nothing waits and nothing runs." in shown(client, "?show=dreams")
    assert "No transcription has failed." in shown(client, "?show=failed&page=x")


def test_the_page_asks_again_for_the_list_alone(client: Client, alice: User) -> None:
    make_job(alice, title="First")
    part = client.get(ADDRESS, headers={"HX-Request": "true"}).content.decode()
    assert ">First</a>" in part
    assert "<html" not in part


def test_the_number_of_queries_does_not_grow(
    client: Client, alice: User, django_assert_max_num_queries: Callable[[int], Any]
) -> None:
    for number in range(12):
        make_job(alice, title=f"Job {number}")
    # session, person, counts, number, jobs, two of the queue, busy ones
    with django_assert_max_num_queries(8):
        shown(client)


def test_a_title_is_text(client: Client, alice: User) -> None:
    recording = make_recording(alice, title="<b>bold</b>")
    jobs.submit_job(recording=recording, requested_by=alice)
    assert "<b>bold</b>" not in shown(client)
