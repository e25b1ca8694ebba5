"""Capability links: who has the address reads the captions of one live session."""

from __future__ import annotations

import hashlib
import uuid
from datetime import datetime

from django.db import models
from django.utils import timezone


class CaptionLink(models.Model):
    """A link to the captions of one session, read-only. Stored as a hash; shown once.

    The token has 128 random bits. Rows are kept after the end, so that an old link is told from a
    wrong one.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    session = models.ForeignKey(
        "transcription.LiveSession", on_delete=models.CASCADE, related_name="links"
    )
    sha256 = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"link {self.id}"

    @staticmethod
    def hash_token(token: str) -> str:
        return hashlib.sha256(token.encode()).hexdigest()

    def is_open(self, now: datetime) -> bool:
        """Whether it leads anywhere at `now`, as long as links are switched on at all."""
        return self.revoked_at is None and now < self.expires_at
