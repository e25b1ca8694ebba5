"""Jobs of everybody: what waits, runs or failed. Titles and figures, no word of what was said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.http import require_POST, require_safe

from transcription import selectors
from transcription.errors import ConflictError
from transcription.models import Job, JobState, Recording, RecordingState
from transcription.pages.administration import administrators_only
from transcription.pages.progress import Progress, progress_of
from transcription.pages.requests import PersonRequest
from transcription.services import job_queue, jobs
from transcription.services.job_states import ACTIVE

JOBS_A_PAGE: Final = 30
UNDER_WAY: Final = Q(state__in=ACTIVE)
FAILED: Final = Q(
    state=JobState.FAILED,
    recording__state=RecordingState.ATTENTION,
    recording__trashed_at=None,
)
"""Of a recording that is still wanted and has not been transcribed since."""
VIEWS: Final = {
    "open": ("Under way", UNDER_WAY),
    "failed": ("Failed", FAILED),
    "ended": ("Ended", ~UNDER_WAY),
}


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job in words, and what may be done about it."""

    job: Job
    progress: Progress
    can_cancel: bool
    can_retry: bool


@administrators_only
@require_safe
def listed(request: PersonRequest) -> HttpResponse:
    """One view of the jobs, a page at a time."""
    everyone = selectors.jobs_administered_by(request.user)
    view = request.GET.get("show", "")
    if view not in VIEWS:
        view = "open"
    counts = everyone.order_by().aggregate(
        **{name: Count("pk", filter=chosen) for name, (_, chosen) in VIEWS.items()}
    )
    order = ("enqueued_at",) if view == "open" else ("-finished_at", "-enqueued_at")
    shown = everyone.filter(VIEWS[view][1]).order_by(*order)
    page = Paginator(shown, JOBS_A_PAGE).get_page(request.GET.get("page"))
    context = {
        "view": view,
        "views": [(name, words, counts[name]) for name, (words, _) in VIEWS.items()],
        "page": page,
        "lines": _lines(list(page.object_list)),
    }
    is_fragment = request.headers.get("HX-Request") == "true"
    name = "jobs_list" if is_fragment else "jobs"
    return render(request, f"administration/{name}.html", context)


@administrators_only
@require_POST
def cancel(request: PersonRequest, job_id: UUID) -> HttpResponse:
    job = selectors.access_administered_job_by_id(request.user, job_id)
    jobs.cancel_job(job=job, cancelled_by=request.user)
    messages.success(request, f"The transcription of “{job.recording.title}” stops.")
    return _back(request)


@administrators_only
@require_POST
def retry(request: PersonRequest, job_id: UUID) -> HttpResponse:
    """Transcribe its recording anew, as it was asked for before."""
    job = selectors.access_administered_job_by_id(request.user, job_id)
    if job.recording.trashed_at is not None:
        raise ConflictError("This recording is in its owner's trash. Nothing was changed.")
    jobs.retry_job(recording=job.recording, requested_by=request.user)
    messages.success(request, f"“{job.recording.title}” is waiting to be transcribed again.")
    return _back(request)


def _back(request: PersonRequest) -> HttpResponse:
    """To the view that the request came from."""
    response = redirect("administration_jobs")
    if (view := request.POST.get("show")) in VIEWS:
        response["Location"] += f"?show={view}"
    return response


def _lines(shown: Sequence[Job]) -> list[JobLine]:
    waits = any(job.state == JobState.QUEUED for job in shown)
    places = job_queue.queue_positions() if waits else {}
    busy = set(
        Job.objects.filter(
            recording__in=[job.recording_id for job in shown], state__in=ACTIVE
        ).values_list("recording_id", flat=True)
    )
    return [
        JobLine(
            job=job,
            progress=_progress(job, places.get(job.id)),
            can_cancel=job.state in ACTIVE and not job.is_cancel_requested,
            can_retry=job.recording_id not in busy and _has_audio(job.recording),
        )
        for job in shown
    ]


def _has_audio(recording: Recording) -> bool:
    """Which is to be kept, too: what is in the trash is left alone."""
    return recording.audio_removed_at is None and recording.trashed_at is None


def _progress(job: Job, place: int | None) -> Progress:
    if job.state in ACTIVE:
        progress = progress_of(job.recording, job, place)
        # What its owner is told while it waits says nothing to others.
        return replace(progress, detail="") if place and not progress.tone else progress
    tone = "danger" if job.state == JobState.FAILED else ""
    return Progress(str(JobState(job.state).label), tone, is_open=False, detail=job.problem)


urlpatterns = [
    path("jobs/", listed, name="administration_jobs"),
    path("jobs/<uuid:job_id>/cancel/", cancel, name="administration_jobs_cancel"),
    path("jobs/<uuid:job_id>/retry/", retry, name="administration_jobs_retry"),
]
