"""Webhooks: their owner's choices, and what is to be told.

`announce` writes what happened beside the cause of it, in one transaction: what is committed is
told, what is rolled back is not. Sending is `webhook_deliveries`, and the requests a runner's.
"""

from __future__ import annotations

import base64
import secrets
import uuid
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from transcription.errors import ConflictError, InvalidInputError
from transcription.models import (
    DeliveryState,
    Job,
    LiveSession,
    LiveUtterance,
    Recording,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
)
from transcription.queue import Task, wake_on_commit
from transcription.services.webhook_addresses import target_of
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act, User

CHOICES: Final = tuple(event for event in WebhookEvent if event is not WebhookEvent.TEST)
"""What a webhook may ask for."""
MAX_WEBHOOKS: Final = 20
"""Of one person."""
MAX_NAME_CHARACTERS: Final = 100
MAX_URL_CHARACTERS: Final = 500
SECRET_BYTES: Final = 32
BOTH_SECRETS_FOR: Final = timedelta(days=1)
"""After a new secret was made, the one before signs as well for so long."""


def create_webhook(*, owner: User, name: str, url: str, events: Collection[str]) -> Webhook:
    """Its `secret` is to be shown to the owner now and never again.

    Raises InvalidInputError (AddressNotAllowedError), ConflictError.
    """
    fields = _checked(name=name, url=url, events=events)
    if Webhook.objects.filter(owner=owner).count() >= MAX_WEBHOOKS:
        raise ConflictError(f"You have {MAX_WEBHOOKS} webhooks, which is the limit.")
    with transaction.atomic():
        webhook = Webhook.objects.create(owner=owner, secret=_new_secret(), **fields)
        record_act(act=Act.WEBHOOK_CHANGED, actor=owner, on=webhook, detail={"how": "made"})
    return webhook


def change_webhook(
    *, webhook: Webhook, name: str, url: str, events: Collection[str], is_active: bool
) -> Webhook:
    """Switched on again, it starts anew: what failed before is forgotten.

    Raises InvalidInputError (AddressNotAllowedError).
    """
    fields: dict[str, Any] = _checked(name=name, url=url, events=events)
    if is_active and not webhook.is_active:
        fields |= {"disabled_reason": "", "failures": 0}
    fields["is_active"] = is_active
    with transaction.atomic():
        for field, value in fields.items():
            setattr(webhook, field, value)
        webhook.save(update_fields=list(fields))
        record_act(act=Act.WEBHOOK_CHANGED, actor=webhook.owner, on=webhook)
        if is_active:
            wake_on_commit(Task.SEND_WEBHOOKS)
    return webhook


def rotate_secret(*, webhook: Webhook) -> Webhook:
    """A new secret, to be shown now and never again; the one before signs beside it for a day."""
    with transaction.atomic():
        webhook.previous_secret = webhook.secret
        webhook.previous_secret_until = timezone.now() + BOTH_SECRETS_FOR
        webhook.secret = _new_secret()
        webhook.save(update_fields=["secret", "previous_secret", "previous_secret_until"])
        record_act(
            act=Act.WEBHOOK_CHANGED, actor=webhook.owner, on=webhook, detail={"how": "new secret"}
        )
    return webhook


def delete_webhook(*, webhook: Webhook) -> None:
    """Its log goes with it."""
    with transaction.atomic():
        record_act(
            act=Act.WEBHOOK_CHANGED, actor=webhook.owner, on=webhook, detail={"how": "deleted"}
        )
        webhook.delete()


def send_test(*, webhook: Webhook) -> WebhookDelivery:
    """Send a first event by hand, through the same road as all others."""
    subject = str(uuid.uuid4())
    with transaction.atomic():
        _write([webhook], WebhookEvent.TEST, subject, {"said": "This is a test."})
    return WebhookDelivery.objects.get(webhook=webhook, event=WebhookEvent.TEST, subject=subject)


# What happened -----------------------------------------------------------------------------------


def announce(*, event: WebhookEvent, owner_id: int, subject: str, data: Mapping[str, Any]) -> None:
    """Tell the owner's webhooks, once for each `subject` of an `event`; inside the transaction of
    the cause. `data` is plain and holds no transcript's words and no names: it outlives them."""
    _write(_listening(Webhook.objects.filter(owner_id=owner_id), event), event, subject, data)


def announce_job(job: Job, event: WebhookEvent, *, code: str = "", problem: str = "") -> None:
    """`recording.ready` or `job.failed`."""
    recording = Recording.objects.only("owner_id", "duration_ms", "language").get(
        id=job.recording_id
    )
    data: dict[str, Any] = {"recording": str(recording.id), "job": str(job.id)}
    if event is WebhookEvent.JOB_FAILED:
        data |= {"code": code, "problem": problem}
    else:
        data |= {"duration_ms": recording.duration_ms, "language": recording.language}
    announce(event=event, owner_id=recording.owner_id, subject=str(job.id), data=data)


def announce_final(final: LiveUtterance) -> None:
    """One look, where nobody listens: the recorder stores many a second. The words follow when it
    is sent (`webhook_deliveries`), so that they are kept in one place alone."""
    event = WebhookEvent.LIVE_FINAL
    listening = _listening(Webhook.objects.filter(owner__live_sessions=final.session_id), event)
    if listening:
        data = {"session": str(final.session_id), "utterance": final.utterance}
        _write(listening, event, f"{final.session_id}:{final.utterance}", data)


def announce_end(session: LiveSession, *, duration_ms: int) -> None:
    """The session is over; `recording` is null where it had no audio."""
    recording = session.recording_id
    announce(
        event=WebhookEvent.LIVE_ENDED,
        owner_id=session.owner_id,
        subject=str(session.id),
        data={
            "session": str(session.id),
            "reference": session.reference,
            "recording": None if recording is None else str(recording),
            "duration_ms": duration_ms,
        },
    )


def _listening(webhooks: QuerySet[Webhook], event: WebhookEvent) -> list[Webhook]:
    # Filtered here: SQLite has no query for what a JSON list contains.
    return [webhook for webhook in webhooks.filter(is_active=True) if event in webhook.events]


def _write(
    webhooks: list[Webhook], event: WebhookEvent, subject: str, data: Mapping[str, Any]
) -> None:
    if not webhooks:
        return
    WebhookDelivery.objects.bulk_create(
        [
            WebhookDelivery(webhook=webhook, event=event, subject=subject, payload=dict(data))
            for webhook in webhooks
        ],
        ignore_conflicts=True,
    )
    wake_on_commit(Task.SEND_WEBHOOKS)


def resend_delivery(*, delivery: WebhookDelivery) -> WebhookDelivery:
    """From the first attempt on, under the same id. Raises ConflictError where it waits already."""
    if (
        not WebhookDelivery.objects.filter(id=delivery.id)
        .exclude(state=DeliveryState.WAITING)
        .update(state=DeliveryState.WAITING, attempts=0, next_attempt_at=timezone.now())
    ):
        raise ConflictError("This is waiting to be sent already.")
    wake_on_commit(Task.SEND_WEBHOOKS)
    delivery.refresh_from_db()
    return delivery


# Input -------------------------------------------------------------------------------------------


def _checked(*, name: str, url: str, events: Collection[str]) -> dict[str, Any]:
    name, url = " ".join(name.split()), url.strip()
    if not 0 < len(name) <= MAX_NAME_CHARACTERS:
        raise InvalidInputError(
            f"Give the webhook a name of at most {MAX_NAME_CHARACTERS} characters."
        )
    if len(url) > MAX_URL_CHARACTERS:
        raise InvalidInputError(f"The address has more than {MAX_URL_CHARACTERS} characters.")
    target_of(url)
    if not events or not set(events) <= set(CHOICES):
        raise InvalidInputError("Choose at least one event to be told of.")
    return {"name": name, "url": url, "events": sorted(set(events))}


def _new_secret() -> str:
    """As Standard Webhooks writes them: a mark, and base64 of random bytes."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()}"
