"""Requested work. The row is the truth; a Celery message is only a wake-up."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone


class JobState(models.TextChoices):
    """queued -> running -> (queued | done | failed | cancelled); queued -> cancelled.

    `JOB_TRANSITIONS` in `transcription.services.job_states` is the table.
    """

    QUEUED = "queued", "Waiting"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


class Job(models.Model):
    """Transcription of one recording.

    A worker claims the row by a conditional UPDATE that raises `fence`; each checkpoint is written
    with `WHERE fence = mine`, so that a worker which lost its lease changes nothing. Work is done
    in slices of about a minute; between slices the job is queued again with its checkpoint, so that
    others get their turn. `enqueued_at` keeps its place in the queue. `track` is the audio track
    that somebody chose for it; None is the one that the recording's transcript is of.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    recording = models.ForeignKey(
        "transcription.Recording", on_delete=models.CASCADE, related_name="jobs"
    )
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="jobs"
    )
    state = models.CharField(max_length=10, choices=JobState, default=JobState.QUEUED)
    language = models.CharField(max_length=16, blank=True)
    is_draft_only = models.BooleanField(default=False)
    track = models.PositiveSmallIntegerField(null=True, blank=True)
    stage = models.CharField(max_length=20, blank=True)
    audio_done_ms = models.PositiveBigIntegerField(default=0)
    audio_total_ms = models.PositiveBigIntegerField(default=0)
    work_seconds = models.FloatField(default=0.0)
    checkpoint = models.JSONField(default=dict, blank=True)
    is_cancel_requested = models.BooleanField(default=False)
    fence = models.PositiveIntegerField(default=0)
    worker = models.CharField(max_length=100, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    problem_code = models.CharField(max_length=40, blank=True)
    problem = models.CharField(max_length=300, blank=True)
    enqueued_at = models.DateTimeField(default=timezone.now)
    last_slice_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-enqueued_at",)
        indexes = (models.Index(fields=("state", "enqueued_at")),)
        constraints = (
            models.UniqueConstraint(
                fields=("recording",),
                condition=models.Q(state__in=("queued", "running")),
                name="one_active_job",
            ),
        )

    def __str__(self) -> str:
        return f"job {self.id}"


class Attempt(models.Model):
    """One try by one worker, from claim to release; `outcome` empty while it runs."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="attempts")
    fence = models.PositiveIntegerField()
    worker = models.CharField(max_length=100)
    started_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=40, blank=True)

    class Meta:
        ordering = ("job", "fence")
        constraints = (models.UniqueConstraint(fields=("job", "fence"), name="attempt_fence_once"),)

    def __str__(self) -> str:
        return f"attempt {self.fence}"
