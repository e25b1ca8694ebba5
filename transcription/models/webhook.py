"""Addresses of other tools that want to hear what happened, and what was sent to them."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone


class WebhookEvent(models.TextChoices):
    """What a webhook may ask for; `TEST` is sent by its owner's hand alone."""

    RECORDING_READY = "recording.ready", "A transcript is ready"
    JOB_FAILED = "job.failed", "A transcription failed"
    LIVE_FINAL = "live.final", "An utterance of a live session is final"
    LIVE_ENDED = "live.ended", "A live session ended"
    RETENTION_PURGED = "retention.purged", "Recordings were deleted by a retention policy"
    TEST = "test", "Test"


class Webhook(models.Model):
    """One address of one owner. `secret` signs what is sent, so it is kept as it is.

    `previous_secret` signs as well until `previous_secret_until`, so that a receiver may change
    over in its own time. `disabled_reason` says why the server gave up on the address; it is empty
    where its owner switched it off.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="webhooks"
    )
    name = models.CharField(max_length=100)
    url = models.URLField(max_length=500)
    secret = models.CharField(max_length=64)
    previous_secret = models.CharField(max_length=64, blank=True)
    previous_secret_until = models.DateTimeField(null=True, blank=True)
    events = models.JSONField(default=list)
    is_active = models.BooleanField(default=True)
    disabled_reason = models.CharField(max_length=300, blank=True)
    failures = models.PositiveIntegerField(default=0, help_text="In a row, across deliveries.")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("created_at",)

    def __str__(self) -> str:
        return self.name


class DeliveryState(models.TextChoices):
    """waiting -> (delivered | failed); a failed one may be sent again by hand: -> waiting."""

    WAITING = "waiting", "Waiting"
    DELIVERED = "delivered", "Delivered"
    FAILED = "failed", "Given up"


class WebhookDelivery(models.Model):
    """One event for one webhook. `id` is sent along, so that a receiver knows a repetition.

    `subject` and `event` together are unique for one webhook: an event is written once, however
    often its cause is seen. A worker claims a row by raising `attempts` while `next_attempt_at` is
    what it read.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=40, choices=WebhookEvent)
    subject = models.CharField(max_length=100)
    payload = models.JSONField(default=dict)
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(default=timezone.now)
    response_status = models.PositiveSmallIntegerField(null=True, blank=True)
    problem = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    delivered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)
        indexes = (models.Index(fields=("state", "next_attempt_at")),)
        constraints = (
            models.UniqueConstraint(
                fields=("webhook", "event", "subject"), name="delivery_of_an_event_once"
            ),
        )

    def __str__(self) -> str:
        return f"delivery {self.id}"
