"""The queue of jobs: whose turn it is, who holds a job, and what is taken back from lost workers.

A worker holds a job by a lease and a fence. What it does with the job: see `jobs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import F, Max, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from transcription.models import Attempt, Job, JobState, RecordingSource, RecordingState
from transcription.queue import Task, send
from transcription.services.job_states import (
    ACTIVE,
    MAX_FAILURES,
    RETRY_DELAYS,
    end_attempt,
    move,
    record_failure,
    reflect,
    reflect_cancelled,
)
from transcription.services.queue_order import Waiting, in_order

LEASE: Final = timedelta(seconds=30)
LOST_CODE: Final = "worker_lost"
LOST_PROBLEM: Final = (
    "The transcription was interrupted several times at the same place, so it was stopped. "
    "Nothing was deleted; you can try it again."
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's hold on a job. `job` is the row as it was when it was claimed."""

    job: Job
    fence: int
    worker: str


def claim_next_job(*, worker: str) -> Claim | None:
    """Take the job whose turn it is; None where nothing waits."""
    for waiting in _queue(timezone.now()):
        claim = _claim(waiting, worker)
        if claim is not None:
            return claim
    return None


def queue_positions() -> dict[UUID, int]:
    """By job: 1 for the one that is next."""
    return {waiting.id: place for place, waiting in enumerate(_queue(timezone.now()), start=1)}


def queue_position(*, job: Job) -> int:
    """1 for the job that is next; 0 for one that does not wait."""
    return queue_positions().get(job.id, 0)


def _queue(now: datetime) -> list[Waiting]:
    rows = Job.objects.filter(state=JobState.QUEUED, is_cancel_requested=False).values_list(
        "id",
        "recording__owner_id",
        "recording__source",
        "audio_total_ms",
        "audio_done_ms",
        "enqueued_at",
        "last_slice_at",
        "failures",
    )
    waiting = [
        Waiting(
            id=job_id,
            owner=owner,
            is_live=source == RecordingSource.LIVE,
            left_ms=total - done,
            enqueued_at=enqueued_at,
            last_slice_at=last_slice_at,
        )
        for job_id, owner, source, total, done, enqueued_at, last_slice_at, failures in rows
        if last_slice_at is None
        or last_slice_at + RETRY_DELAYS[min(failures, MAX_FAILURES - 1)] <= now
    ]
    served = dict(
        Job.objects.filter(last_slice_at__gt=now - timedelta(hours=1))
        .values_list("recording__owner_id")
        .annotate(Max("last_slice_at"))
        .order_by()
    )
    return in_order(waiting, served_at=served, now=now)


def _claim(waiting: Waiting, worker: str) -> Claim | None:
    now = timezone.now()
    with transaction.atomic():
        query = Job.objects.filter(
            id=waiting.id, state=JobState.QUEUED, last_slice_at=waiting.last_slice_at
        )
        if not move(
            query,
            JobState.RUNNING,
            fence=F("fence") + 1,
            worker=worker,
            lease_expires_at=now + LEASE,
            last_slice_at=now,
            started_at=Coalesce("started_at", now),
        ):
            return None
        job = Job.objects.select_related("recording").get(id=waiting.id)
        Attempt.objects.create(job=job, fence=job.fence, worker=worker, started_at=now)
        reflect(job.recording, RecordingState.TRANSCRIBING)
    return Claim(job=job, fence=job.fence, worker=worker)


# What keeps jobs going when workers do not --------------------------------------------------------


def reap_jobs() -> int:
    """Take back jobs whose lease has run out, and wake a worker where something waits."""
    count = _take_back(Job.objects.filter(lease_expires_at__lt=timezone.now()))
    states = set(Job.objects.filter(state__in=ACTIVE).values_list("state", flat=True))
    # A worker that runs a job asks for the next one itself.
    if states == {JobState.QUEUED}:
        send(Task.RUN_JOBS, expires_s=LEASE.total_seconds())
    return count


def reclaim_jobs(*, worker: str) -> int:
    """Take back what a dead process of the same name held, without waiting for its lease."""
    return _take_back(Job.objects.filter(worker=worker))


def _take_back(jobs: QuerySet[Job]) -> int:
    count = 0
    for job_id in jobs.filter(state=JobState.RUNNING).values_list("id", flat=True):
        with transaction.atomic():
            # The condition again: its worker may have renewed the lease meanwhile.
            job = jobs.filter(id=job_id, state=JobState.RUNNING).select_for_update().first()
            if job is None:
                continue
            if job.is_cancel_requested:
                end_attempt(job, JobState.CANCELLED, "cancelled")
                reflect_cancelled(job.recording)
            else:
                record_failure(
                    job,
                    code=LOST_CODE,
                    problem=LOST_PROBLEM,
                    outcome=LOST_CODE,
                    is_retryable=True,
                )
            count += 1
    return count
