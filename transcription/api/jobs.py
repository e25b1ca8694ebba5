"""REST v1: jobs, which are transcriptions that were asked for."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpResponse
from django.urls import reverse
from ninja import Query, Router

from transcription import selectors
from transcription.api.access import READS, WRITES, ApiRequest
from transcription.api.answers import tagged
from transcription.api.cursors import Page, Paging, newest_first
from transcription.api.repetition import once_by_key
from transcription.api.resources.jobs import JobFilter, JobIn, JobOut
from transcription.errors import InvalidInputError
from transcription.models import JobState
from transcription.services import job_queue, jobs, tracks

router = Router()
of_recordings = Router()


@router.get("", auth=READS, response=Page[JobOut])
def list_jobs(request: ApiRequest, wanted: Query[JobFilter], paging: Query[Paging]) -> Page[JobOut]:
    """Jobs of the recordings that you may read, the newest first."""
    visible = selectors.jobs_visible_to(request.auth)
    if wanted.state is not None:
        visible = visible.filter(state=wanted.state)
    if wanted.recording is not None:
        visible = visible.filter(recording=wanted.recording)
    rows, next_cursor = newest_first(visible, paging, by="enqueued_at")
    return Page(items=[JobOut.of(row) for row in rows], next_cursor=next_cursor)


@router.get("/{job_id}", auth=READS, response={200: JobOut, 304: None})
def read_job(request: ApiRequest, job_id: UUID) -> HttpResponse:
    """One job, with its place in the queue."""
    job = selectors.access_job_by_id(request.auth, job_id)
    place = job_queue.queue_position(job=job) if job.state == JobState.QUEUED else 0
    return tagged(request, JobOut.of(job, queue_position=place or None))


@router.post("/{job_id}/cancel", auth=WRITES, response=JobOut)
def cancel_job(request: ApiRequest, job_id: UUID) -> HttpResponse:
    """Stop it: at once where it waits, within moments where it runs. Harmless afterwards."""
    job = selectors.access_job_by_id(request.auth, job_id)
    selectors.access_editable_recording_by_id(request.auth, job.recording_id)
    return tagged(request, JobOut.of(jobs.cancel_job(job=job, cancelled_by=request.auth)))


@of_recordings.post("/{recording_id}/jobs", auth=WRITES, response={201: JobOut})
@once_by_key()
def create_job(request: ApiRequest, recording_id: UUID, asked: JobIn) -> HttpResponse:
    """Transcribe a recording again, from the start: another language, another track."""
    recording = selectors.access_editable_recording_by_id(request.auth, recording_id)
    if asked.track is None:
        options = jobs.options_again(
            recording=recording, asked=asked.read(), given=asked.model_fields_set
        )
        job = jobs.retry_job(recording=recording, requested_by=request.auth, options=options)
    elif asked.model_fields_set == {"track"}:
        job = tracks.choose_track(recording=recording, track=asked.track, requested_by=request.auth)
    else:
        raise InvalidInputError("Choose another track, or other options: not both at once.")
    location = reverse("api-v1:read_job", args=[job.id])
    return tagged(request, JobOut.of(job), status=201, location=location)
