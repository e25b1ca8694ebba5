"""What waits to be sent by webhooks: whose turn it is, what is sent, and what became of it.

At least once, under a stable id: an attempt is counted, and the next one set, before the request
leaves, so a process that is killed in the middle costs a repetition and never a loss. The form is
that of Standard Webhooks (https://www.standardwebhooks.com), for which receivers find libraries.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from transcription.models import (
    DeliveryState,
    LiveUtterance,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
)

RETRY_AFTER: Final = tuple(
    timedelta(minutes=minutes) for minutes in (0.5, 2, 10, 30, 60, 180, 360, 720)
)
"""Between two attempts; after as many and one the event is given up, most of a day after it."""
MAX_ATTEMPTS: Final = len(RETRY_AFTER) + 1
AT_ONCE: Final = 4
"""Requests to one webhook at a time; one that failed last gets a single one."""
KEPT_FOR: Final = timedelta(days=30)
GONE: Final = 410

KILLED_PROBLEM: Final = "The server was stopped while it sent this."
DELETED_PROBLEM: Final = "What this told of has been deleted."
GONE_REASON: Final = "The address said that it is gone for good (status 410)."
GIVEN_UP_REASON: Final = "Nothing could be delivered for most of a day."


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One attempt, ready to leave."""

    delivery_id: UUID
    webhook_id: UUID
    attempt: int
    url: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """`status` is None where no answer came; `problem` is a sentence for the webhook's owner, and
    empty where it was delivered."""

    status: int | None
    problem: str = ""


def claim_deliveries(*, limit: int, busy: Mapping[UUID, int]) -> list[Dispatch]:
    """Up to `limit` attempts that are due, fair between webhooks; `busy` counts those under way."""
    now = timezone.now()
    due = Webhook.objects.filter(
        is_active=True,
        owner__is_active=True,
        deliveries__state=DeliveryState.WAITING,
        deliveries__next_attempt_at__lte=now,
    )
    dispatches: list[Dispatch] = []
    for webhook in due.distinct():
        at_once = (1 if webhook.failures else AT_ONCE) - busy.get(webhook.id, 0)
        count = min(at_once, limit - len(dispatches))
        if count > 0:
            dispatches += _claim(webhook, count, now)
    return dispatches


def _claim(webhook: Webhook, count: int, now: datetime) -> Iterator[Dispatch]:
    waiting = webhook.deliveries.filter(state=DeliveryState.WAITING, next_attempt_at__lte=now)
    for delivery in waiting.order_by("next_attempt_at", "created_at")[:count]:
        attempt = delivery.attempts + 1
        if attempt > MAX_ATTEMPTS:
            _give_up(delivery.id, attempt - 1, Outcome(None, KILLED_PROBLEM))
            continue
        data = _data_of(delivery)
        if data is None:
            _give_up(delivery.id, delivery.attempts, Outcome(None, DELETED_PROBLEM))
            continue
        after = RETRY_AFTER[min(attempt, len(RETRY_AFTER)) - 1]
        if not WebhookDelivery.objects.filter(
            id=delivery.id,
            state=DeliveryState.WAITING,
            attempts=delivery.attempts,
            next_attempt_at=delivery.next_attempt_at,
        ).update(attempts=attempt, next_attempt_at=now + after):
            continue  # another process was faster
        body = _body(delivery, data)
        yield Dispatch(
            delivery_id=delivery.id,
            webhook_id=webhook.id,
            attempt=attempt,
            url=webhook.url,
            headers={
                "content-type": "application/json",
                "user-agent": "transcription-webhooks/1",
                "webhook-id": str(delivery.id),
                "webhook-timestamp": str(int(now.timestamp())),
                "webhook-signature": signature_of(webhook, str(delivery.id), now, body),
            },
            body=body,
        )


def _data_of(delivery: WebhookDelivery) -> dict[str, Any] | None:
    """What is told. The words of an utterance are looked up now, as they were when it was closed;
    None where they are deleted."""
    data: dict[str, Any] = delivery.payload
    if delivery.event != WebhookEvent.LIVE_FINAL:
        return data
    final = (
        LiveUtterance.objects.select_related("session")
        .filter(session_id=data["session"], utterance=data["utterance"])
        .first()
    )
    if final is None:
        return None
    return data | {
        "reference": final.session.reference,
        "start_ms": final.start_ms,
        "end_ms": final.end_ms,
        "language": final.language,
        "text": final.text,
        "words": final.words,
    }


def _body(delivery: WebhookDelivery, data: Mapping[str, Any]) -> bytes:
    message = {
        "id": str(delivery.id),
        "type": delivery.event,
        "timestamp": delivery.created_at.isoformat(),
        "data": data,
    }
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def signature_of(webhook: Webhook, message_id: str, at: datetime, body: bytes) -> str:
    """HMAC-SHA256 over id, time and body, as `v1,<base64>`; by both secrets while they overlap."""
    secrets = [webhook.secret]
    if webhook.previous_secret_until is not None and at < webhook.previous_secret_until:
        secrets.append(webhook.previous_secret)
    signed = f"{message_id}.{int(at.timestamp())}.".encode() + body
    return " ".join(f"v1,{_hmac(secret, signed)}" for secret in secrets)


def _hmac(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


# What became of it -------------------------------------------------------------------------------


def note_outcome(*, dispatch: Dispatch, outcome: Outcome) -> None:
    """Delivered, or to be tried again at the time that was set, or given up."""
    if not outcome.problem:
        WebhookDelivery.objects.filter(id=dispatch.delivery_id).exclude(
            state=DeliveryState.DELIVERED
        ).update(
            state=DeliveryState.DELIVERED,
            delivered_at=timezone.now(),
            response_status=outcome.status,
            problem="",
        )
        Webhook.objects.filter(id=dispatch.webhook_id).exclude(failures=0).update(failures=0)
        return
    with transaction.atomic():
        Webhook.objects.filter(id=dispatch.webhook_id).update(failures=F("failures") + 1)
        is_gone = outcome.status == GONE
        if not is_gone and dispatch.attempt < MAX_ATTEMPTS:
            _held(dispatch.delivery_id, dispatch.attempt).update(
                response_status=outcome.status, problem=outcome.problem
            )
            return
        _give_up(dispatch.delivery_id, dispatch.attempt, outcome)
        webhook = Webhook.objects.filter(id=dispatch.webhook_id, is_active=True)
        if is_gone:
            webhook.update(is_active=False, disabled_reason=GONE_REASON)
        else:  # where others came through meanwhile, it is this event that is unwelcome
            webhook.filter(failures__gte=MAX_ATTEMPTS).update(
                is_active=False, disabled_reason=GIVEN_UP_REASON
            )


def _held(delivery_id: UUID, attempt: int) -> Any:
    return WebhookDelivery.objects.filter(
        id=delivery_id, state=DeliveryState.WAITING, attempts=attempt
    )


def _give_up(delivery_id: UUID, attempt: int, outcome: Outcome) -> None:
    _held(delivery_id, attempt).update(
        state=DeliveryState.FAILED, response_status=outcome.status, problem=outcome.problem
    )


def forget_deliveries() -> int:
    """Remove what is older than the log is kept; how many."""
    return WebhookDelivery.objects.filter(created_at__lt=timezone.now() - KEPT_FOR).delete()[0]
