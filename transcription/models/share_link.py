"""Capability links: who has the address reads one live session's captions, or one recording."""

from __future__ import annotations

import hashlib
import uuid
from datetime import datetime

from django.db import models
from django.utils import timezone

from transcription.models.live_session import LiveSession
from transcription.models.recording import Recording


class ShareLink(models.Model):
    """A link to the captions of one session or to one recording, read-only.

    Stored as a hash; shown once.

    The token has 128 random bits. Rows are kept after the end, so that an old link is told from a
    wrong one.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    session = models.ForeignKey(
        LiveSession,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="links",
    )
    recording = models.ForeignKey(
        Recording,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="links",
    )
    sha256 = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(recording=None) ^ models.Q(session=None),
                name="link_to_one_thing",
            ),
        )

    def __str__(self) -> str:
        return f"link {self.id}"

    @staticmethod
    def hash_token(token: str) -> str:
        return hashlib.sha256(token.encode()).hexdigest()

    def is_open(self, now: datetime) -> bool:
        """Whether it leads anywhere at `now`, as long as links are switched on at all."""
        return self.revoked_at is None and now < self.expires_at

    @property
    def live_session(self) -> LiveSession:
        """Of a link to captions. Raises ValueError for one that leads to a recording."""
        if self.session is None:
            raise ValueError("a link to a recording has no session")
        return self.session

    @property
    def linked_recording(self) -> Recording:
        """Of a link to a recording. Raises ValueError for one that leads to captions."""
        if self.recording is None:
            raise ValueError("a link to captions has no recording")
        return self.recording

    @property
    def thing(self) -> LiveSession | Recording:
        return self.live_session if self.session is not None else self.linked_recording
