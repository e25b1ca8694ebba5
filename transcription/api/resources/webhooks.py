"""REST v1: webhooks and what was sent to them, as they are told."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from ninja import Schema
from pydantic import Field

from transcription.api.words import Line
from transcription.models import DeliveryState, Webhook, WebhookDelivery, WebhookEvent
from transcription.services import webhooks

Name = Annotated[Line, Field(min_length=1, max_length=webhooks.MAX_NAME_CHARACTERS)]
Url = Annotated[
    Line,
    Field(
        max_length=webhooks.MAX_URL_CHARACTERS,
        description="http or https, at a place that an administrator has allowed.",
    ),
]
Events = Annotated[list[WebhookEvent], Field(min_length=1, max_length=len(webhooks.CHOICES))]


class WebhookIn(Schema):
    """Where to, and of what."""

    name: Name
    url: Url
    events: Events


class WebhookChange(Schema):
    """What is left out stays."""

    name: Name | None = None
    url: Url | None = None
    events: Events | None = None
    is_active: bool | None = None


class WebhookOut(Schema):
    """A webhook. `disabled_reason` says why the server has stopped sending to it."""

    id: UUID
    name: str
    url: str
    events: list[WebhookEvent]
    is_active: bool
    disabled_reason: str
    failures: Annotated[int, Field(description="In a row; 0 once something was delivered.")]
    created_at: datetime

    @staticmethod
    def of(webhook: Webhook) -> WebhookOut:
        return WebhookOut.model_validate(webhook)


class WebhookMade(WebhookOut):
    """With the secret that its messages are signed by: said here and never again."""

    secret: str


class DeliveryOut(Schema):
    """One event, and what became of it. `id` is the `webhook-id` of each attempt."""

    id: UUID
    event: WebhookEvent
    state: DeliveryState
    attempts: int
    next_attempt_at: datetime
    response_status: int | None
    problem: str
    created_at: datetime
    delivered_at: datetime | None

    @staticmethod
    def of(delivery: WebhookDelivery) -> DeliveryOut:
        return DeliveryOut.model_validate(delivery)
