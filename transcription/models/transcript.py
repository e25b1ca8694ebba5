"""Transcript revisions: all segments of a recording as one pass, or one edit, left them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone


class RevisionKind(models.TextChoices):
    LIVE = "live", "Live captions"
    DRAFT = "draft", "Draft"
    REFINED = "refined", "Refined"
    EDITED = "edited", "Edited"


class TranscriptRevision(models.Model):
    """One revision. A revision that a pass is still writing has `is_complete` false.

    `number` counts from 1 within the recording. A refined one that is not complete stands for the
    first `replaced_segments` of its job's draft; the draft's others are still read after it. Labels
    of revisions with the same `voices` mean the same people (see `services.speakers.voices_of`).
    """

    recording = models.ForeignKey(
        "transcription.Recording", on_delete=models.CASCADE, related_name="revisions"
    )
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, choices=RevisionKind)
    job = models.ForeignKey(
        "transcription.Job",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="revisions",
    )
    language = models.CharField(max_length=16, blank=True)
    language_confidence = models.FloatField(null=True, blank=True)
    voices = models.CharField(max_length=40, blank=True)
    model_name = models.CharField(max_length=80, blank=True)
    is_complete = models.BooleanField(default=False)
    replaced_segments = models.PositiveIntegerField(default=0)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("recording", "number")
        constraints = (
            models.UniqueConstraint(fields=("recording", "number"), name="revision_number_once"),
        )

    def __str__(self) -> str:
        return f"revision {self.number} ({self.kind})"


class SegmentMark(models.TextChoices):
    """What stands in the place of words."""

    UNCLEAR = "unclear", "Not understood"


class TranscriptSegment(models.Model):
    """A timed piece. `words` holds `asr_engine.results.Word.as_json` objects.

    `speaker` is a label ("1", "2"; "left", "right" for channels) that `SpeakerName` gives a name.
    One with a `mark` has no text. `language` is blank where it is the revision's.
    """

    revision = models.ForeignKey(
        TranscriptRevision, on_delete=models.CASCADE, related_name="segments"
    )
    index = models.PositiveIntegerField()
    start_ms = models.PositiveBigIntegerField()
    end_ms = models.PositiveBigIntegerField()
    text = models.TextField()
    words = models.JSONField(default=list)
    speaker = models.CharField(max_length=100, blank=True)
    language = models.CharField(max_length=16, blank=True)
    mark = models.CharField(max_length=16, choices=SegmentMark, blank=True)
    mean_log_probability = models.FloatField(null=True, blank=True)
    no_speech_probability = models.FloatField(null=True, blank=True)

    class Meta:
        ordering = ("revision", "index")
        constraints = (
            models.UniqueConstraint(fields=("revision", "index"), name="segment_index_once"),
            models.CheckConstraint(
                condition=models.Q(end_ms__gt=models.F("start_ms")), name="segment_ends_after_start"
            ),
        )

    def __str__(self) -> str:
        return f"segment {self.index}"


class SpeakerName(models.Model):
    """What people call a speaker of the revisions with these `voices`, present and future ones."""

    recording = models.ForeignKey(
        "transcription.Recording", on_delete=models.CASCADE, related_name="speaker_names"
    )
    voices = models.CharField(max_length=40, blank=True)
    label = models.CharField(max_length=100)
    name = models.CharField(max_length=100)

    class Meta:
        ordering = ("recording", "label")
        constraints = (
            models.UniqueConstraint(
                fields=("recording", "voices", "label"), name="speaker_name_once"
            ),
        )

    def __str__(self) -> str:
        return self.label
