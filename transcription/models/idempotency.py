"""Answers to requests that may come again."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone


class IdempotentRequest(models.Model):
    """A request that a tool marked with an `Idempotency-Key`, and what it was answered.

    `fingerprint` is a hash of method, path and body: the same key with another request is an error.
    `status` is empty while the first one is still being answered.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    headers = models.JSONField(default=dict, blank=True)
    body = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("user", "key"), name="idempotency_key_once"),
        )

    def __str__(self) -> str:
        return f"request {self.pk}"
