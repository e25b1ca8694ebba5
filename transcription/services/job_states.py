"""States of jobs: the table of their changes, and what a change leaves on attempt and recording.

Everything here belongs in the caller's transaction.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db.models import QuerySet
from django.utils import timezone

from transcription.broadcast import recording_changed_on_commit
from transcription.models import (
    Attempt,
    Job,
    JobState,
    Recording,
    RecordingState,
    TranscriptRevision,
    WebhookEvent,
)
from transcription.queue import Task, wake_on_commit
from transcription.services import webhooks

JOB_TRANSITIONS: Final = {
    JobState.QUEUED: {JobState.RUNNING, JobState.CANCELLED},
    JobState.RUNNING: {JobState.QUEUED, JobState.DONE, JobState.FAILED, JobState.CANCELLED},
    JobState.DONE: set(),
    JobState.FAILED: set(),
    JobState.CANCELLED: set(),
}
ACTIVE: Final = (JobState.QUEUED, JobState.RUNNING)
RETRY_DELAYS: Final = (timedelta(0), timedelta(0), timedelta(seconds=20))
"""Pause before the next attempt after so many failures without progress; then the job fails."""
MAX_FAILURES: Final = len(RETRY_DELAYS)

CANCELLED_CODE: Final = "cancelled"
CANCELLED_PROBLEM: Final = "Transcription was cancelled. You can start it again."


def move(jobs: QuerySet[Job], to: JobState, **fields: object) -> bool:
    """Change the state where the table allows it; False where it does not (any more)."""
    sources = [state for state, targets in JOB_TRANSITIONS.items() if to in targets]
    if to not in ACTIVE:
        fields["finished_at"] = timezone.now()
    return jobs.filter(state__in=sources).update(state=to, **fields) == 1


def end_attempt(job: Job, to: JobState, outcome: str, **fields: object) -> None:
    """Whoever holds `job` holds it no longer."""
    move(Job.objects.filter(id=job.id), to, lease_expires_at=None, **fields)
    close_attempt(job, job.fence, outcome)


def close_attempt(job: Job, fence: int, outcome: str) -> None:
    Attempt.objects.filter(job=job, fence=fence).update(ended_at=timezone.now(), outcome=outcome)


def record_failure(job: Job, *, code: str, problem: str, outcome: str, is_retryable: bool) -> None:
    """It waits for another attempt, or fails with a sentence for its owner."""
    failures = job.failures + 1
    if is_retryable and failures < MAX_FAILURES:
        end_attempt(job, JobState.QUEUED, outcome, failures=failures)
        reflect(job.recording, RecordingState.QUEUED)
        wake_on_commit(Task.RUN_JOBS)
        return
    end_attempt(
        job, JobState.FAILED, outcome, failures=failures, problem_code=code, problem=problem
    )
    reflect(job.recording, RecordingState.ATTENTION, problem_code=code, problem=problem)
    webhooks.announce_job(job, WebhookEvent.JOB_FAILED, code=code, problem=problem)


def reflect(
    recording: Recording,
    state: RecordingState,
    *,
    problem_code: str = "",
    problem: str = "",
) -> None:
    """Show a job's state on its recording."""
    Recording.objects.filter(id=recording.id).update(
        state=state, problem_code=problem_code, problem=problem
    )
    recording_changed_on_commit(recording.id)


def reflect_cancelled(recording: Recording) -> None:
    """A recording with a complete transcript stays ready; another needs attention."""
    has_text = TranscriptRevision.objects.filter(
        id__in=Recording.objects.filter(id=recording.id).values("current_revision"),
        is_complete=True,
    ).exists()
    if has_text:
        reflect(recording, RecordingState.READY)
    else:
        reflect(
            recording,
            RecordingState.ATTENTION,
            problem_code=CANCELLED_CODE,
            problem=CANCELLED_PROBLEM,
        )
