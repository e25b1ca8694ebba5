"""Who besides its owner may read or change a recording or a live session."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone


class Share(models.Model):
    """One recording or live session, shared with one person or one team.

    When a live session becomes a recording its shares are made for the recording too.
    """

    recording = models.ForeignKey(
        "transcription.Recording",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="shares",
    )
    session = models.ForeignKey(
        "transcription.LiveSession",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="shares",
    )
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="shares",
    )
    team = models.ForeignKey(
        "accounts.Team", null=True, blank=True, on_delete=models.CASCADE, related_name="shares"
    )
    can_edit = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("created_at",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(recording=None) ^ models.Q(session=None),
                name="share_of_one_thing",
            ),
            models.CheckConstraint(
                condition=models.Q(person=None) ^ models.Q(team=None), name="share_with_one_side"
            ),
            models.UniqueConstraint(
                fields=("recording", "person"), name="recording_shared_once_with_person"
            ),
            models.UniqueConstraint(
                fields=("recording", "team"), name="recording_shared_once_with_team"
            ),
            models.UniqueConstraint(
                fields=("session", "person"), name="session_shared_once_with_person"
            ),
            models.UniqueConstraint(
                fields=("session", "team"), name="session_shared_once_with_team"
            ),
        )

    def __str__(self) -> str:
        return f"share {self.pk}"


class OpenedContent(models.Model):
    """An administrator's recorded act: they may read one thing of somebody else's, for a while."""

    administrator = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    recording = models.ForeignKey(
        "transcription.Recording",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="openings",
    )
    session = models.ForeignKey(
        "transcription.LiveSession",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="openings",
    )
    reason = models.CharField(max_length=300)
    opened_at = models.DateTimeField(default=timezone.now)
    closes_at = models.DateTimeField()

    class Meta:
        ordering = ("-opened_at",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(recording=None) ^ models.Q(session=None),
                name="opening_of_one_thing",
            ),
        )

    def __str__(self) -> str:
        return f"opening {self.pk}"
