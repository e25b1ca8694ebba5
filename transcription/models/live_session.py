"""One meeting being captured, its finals and its marks."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone


class LiveState(models.TextChoices):
    """created -> live <-> waiting -> ending -> ended; `LIVE_TRANSITIONS` in services is the table.

    `ending`: no more audio will come; finals and the file are being completed.
    """

    CREATED = "created", "Not started"
    LIVE = "live", "Live"
    WAITING = "waiting", "Waiting for the speaker"
    ENDING = "ending", "Finishing"
    ENDED = "ended", "Ended"


class Visibility(models.TextChoices):
    PRIVATE = "private", "Only me"
    ORGANISATION = "organisation", "Everybody who can log in"


class LiveSession(models.Model):
    """A live session. Its clock counts samples at SAMPLE_RATE from `started_at`.

    `last_seq` numbers stored changes (final, refined, gap, closed) and is taken in the transaction
    that stores the change.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="live_sessions"
    )
    title = models.CharField(max_length=300)
    reference = models.CharField(
        max_length=64, blank=True, help_text="What the tool that made it calls it: a call's id."
    )
    visibility = models.CharField(
        max_length=20, choices=Visibility, default=Visibility.ORGANISATION
    )
    team = models.ForeignKey(
        "accounts.Team",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="Of the recording that it becomes.",
    )
    language = models.CharField(max_length=16, blank=True)
    mode_ms = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=10, choices=LiveState, default=LiveState.CREATED)
    last_seq = models.PositiveIntegerField(default=0)
    samples = models.PositiveBigIntegerField(default=0)
    clock = models.JSONField(default=list, help_text="[sample, epoch milliseconds] pairs.")
    # What was said goes with the recording that it became.
    recording = models.OneToOneField(
        "transcription.Recording",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="live_session",
    )
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    last_packet_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)
        indexes = (models.Index(fields=("state",)),)

    def __str__(self) -> str:
        return self.title

    @property
    def folder(self) -> Path:
        return Path(settings.MEDIA_ROOT) / "live" / str(self.id)

    @property
    def pcm_path(self) -> Path:
        return self.folder / "audio.pcm"


class LiveUtterance(models.Model):
    """A final. `seq` is that of its latest change.

    `refined_at` says when the second pass heard it; `refined_text` then replaces `text` for readers
    (empty where that pass found nothing better).
    """

    session = models.ForeignKey(LiveSession, on_delete=models.CASCADE, related_name="utterances")
    utterance = models.PositiveIntegerField()
    seq = models.PositiveIntegerField()
    start_ms = models.PositiveBigIntegerField()
    end_ms = models.PositiveBigIntegerField()
    text = models.TextField()
    words = models.JSONField(default=list)
    language = models.CharField(max_length=16, blank=True)
    reason = models.CharField(max_length=20, blank=True)
    refined_text = models.TextField(blank=True)
    refined_words = models.JSONField(default=list, blank=True)
    refined_at = models.DateTimeField(null=True, blank=True)
    refine_attempts = models.PositiveSmallIntegerField(default=0)
    stored_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("session", "utterance")
        constraints = (
            models.UniqueConstraint(fields=("session", "utterance"), name="utterance_once"),
        )

    def __str__(self) -> str:
        return f"utterance {self.utterance}"

    @property
    def shown_text(self) -> str:
        """What readers see."""
        return self.refined_text or self.text

    @property
    def shown_words(self) -> list[dict[str, Any]]:
        words: list[dict[str, Any]] = self.refined_words if self.refined_text else self.words
        return words


class LiveMarkKind(models.TextChoices):
    GAP = "gap", "Missing audio"
    PAUSED = "paused", "Paused"
    CLOSED = "closed", "Closed"


class LiveMark(models.Model):
    """Something that happened to the session's clock. `end_ms` equals `start_ms` for a pause."""

    session = models.ForeignKey(LiveSession, on_delete=models.CASCADE, related_name="marks")
    seq = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, choices=LiveMarkKind)
    start_ms = models.PositiveBigIntegerField()
    end_ms = models.PositiveBigIntegerField()
    wall_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("session", "seq")
        constraints = (
            models.UniqueConstraint(fields=("session", "kind", "start_ms"), name="mark_once"),
        )

    def __str__(self) -> str:
        return f"{self.kind} at {self.start_ms}"
