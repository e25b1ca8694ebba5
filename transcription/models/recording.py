"""Stored audio and the uploads that become it."""

from __future__ import annotations

import uuid
from pathlib import Path

from django.conf import settings
from django.db import models
from django.utils import timezone


class RecordingSource(models.TextChoices):
    UPLOAD = "upload", "Upload"
    LIVE = "live", "Live session"


class RecordingState(models.TextChoices):
    """Derived from the recording's newest job, stored so that lists need no join."""

    QUEUED = "queued", "Waiting"
    TRANSCRIBING = "transcribing", "Transcribing"
    READY = "ready", "Ready"
    ATTENTION = "attention", "Needs attention"


class ChineseScript(models.TextChoices):
    """Which characters Mandarin is written in; blank: as the site says."""

    SIMPLIFIED = "hans", "Simplified"
    TRADITIONAL = "hant", "Traditional"


class Recording(models.Model):
    """Stored audio with an owner, an expiry and transcript revisions.

    Its files lie in a folder named by its id; no user-chosen name reaches the file system.
    `source.bin` holds the bytes as they came, `player.*` what the page plays. `tracks` says what
    each audio track holds, as `asr_engine.batch.channels` found it; `track` is the one that
    somebody chose, from when its text is shown: until then its job has it. With `speaker_count`
    None the speakers are counted. In the trash (`trashed_at`) it is seen by nobody but its owner,
    there, until it is restored or dies.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="recordings"
    )
    title = models.CharField(max_length=300)
    display_name = models.CharField(max_length=300, blank=True)
    source = models.CharField(max_length=10, choices=RecordingSource)
    state = models.CharField(max_length=20, choices=RecordingState, default=RecordingState.QUEUED)
    is_organisation_wide = models.BooleanField(default=False)
    team = models.ForeignKey(
        "accounts.Team",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="Whose retention policy counts; without one, the organisation's.",
    )
    requested_language = models.CharField(max_length=16, blank=True)
    mixes_languages = models.BooleanField(default=False)
    chinese_script = models.CharField(max_length=4, choices=ChineseScript, blank=True)
    finds_speakers = models.BooleanField(default=False)
    speaker_count = models.PositiveSmallIntegerField(null=True, blank=True)
    track = models.PositiveSmallIntegerField(null=True, blank=True)
    tracks = models.JSONField(default=list, blank=True)
    language = models.CharField(max_length=16, blank=True)
    language_confidence = models.FloatField(null=True, blank=True)
    duration_ms = models.PositiveBigIntegerField(default=0)
    size_bytes = models.PositiveBigIntegerField(default=0)
    container = models.CharField(max_length=40, blank=True)
    codec = models.CharField(max_length=40, blank=True)
    media_type = models.CharField(max_length=80, default="application/octet-stream")
    player_name = models.CharField(max_length=40, default="source.bin")
    problem_code = models.CharField(max_length=40, blank=True)
    problem = models.CharField(max_length=300, blank=True)
    notice = models.CharField(max_length=300, blank=True)
    current_revision = models.ForeignKey(
        "transcription.TranscriptRevision",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    created_at = models.DateTimeField(default=timezone.now, db_index=True)
    recorded_at = models.DateTimeField(default=timezone.now)
    # Retention: a date of its own instead of the policy's, a legal hold, the trash.
    expires_at = models.DateTimeField(null=True, blank=True)
    is_held = models.BooleanField(default=False)
    held_reason = models.CharField(max_length=300, blank=True)
    trashed_at = models.DateTimeField(null=True, blank=True)
    trashed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="Empty: a retention policy.",
    )
    audio_removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)
        indexes = (
            models.Index(fields=("owner", "-created_at")),
            # Lists leave the trash out, and show what is newest.
            models.Index(fields=("trashed_at", "-created_at")),
            models.Index(fields=("trashed_at", "-recorded_at", "-created_at")),
        )

    def __str__(self) -> str:
        return self.title

    @property
    def folder(self) -> Path:
        return Path(settings.MEDIA_ROOT) / "recordings" / str(self.id)

    @property
    def source_path(self) -> Path:
        return self.folder / "source.bin"

    @property
    def player_path(self) -> Path:
        return self.folder / self.player_name


class UploadState(models.TextChoices):
    RECEIVING = "receiving", "Uploading"
    CHECKING = "checking", "Checking"
    ACCEPTED = "accepted", "Accepted"
    REFUSED = "refused", "Refused"


class Upload(models.Model):
    """Bytes on their way in (tus). Quarantined in a folder of its own until it has been probed.

    The recording that it becomes takes over its id, and dies at `recording_expires_at` where that
    is set. `copied_from` names a file of this machine from which the bytes are copied.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="uploads"
    )
    display_name = models.CharField(max_length=300)
    language = models.CharField(max_length=16, blank=True)
    mixes_languages = models.BooleanField(default=False)
    finds_speakers = models.BooleanField(default=False)
    speaker_count = models.PositiveSmallIntegerField(null=True, blank=True)
    is_draft_only = models.BooleanField(default=False)
    recording_expires_at = models.DateTimeField(null=True, blank=True)
    copied_from = models.CharField(max_length=4096, blank=True)
    length_bytes = models.PositiveBigIntegerField()
    offset_bytes = models.PositiveBigIntegerField(default=0)
    state = models.CharField(max_length=20, choices=UploadState, default=UploadState.RECEIVING)
    checks = models.PositiveSmallIntegerField(default=0, help_text="Checks begun so far.")
    problem_code = models.CharField(max_length=40, blank=True)
    problem = models.CharField(max_length=300, blank=True)
    recording = models.OneToOneField(
        Recording, null=True, blank=True, on_delete=models.CASCADE, related_name="upload"
    )
    created_at = models.DateTimeField(default=timezone.now)
    touched_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"upload {self.id}"

    @property
    def folder(self) -> Path:
        return Path(settings.MEDIA_ROOT) / "uploads" / str(self.id)

    @property
    def part_path(self) -> Path:
        return self.folder / "part.bin"
