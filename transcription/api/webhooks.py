"""REST v1: webhooks of the one who asks, and what was sent to them."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.http import HttpResponse
from ninja import Query, Router

from transcription import selectors
from transcription.api.access import Access, ApiRequest
from transcription.api.answers import check_unchanged, checks_tag, tagged
from transcription.api.cursors import Page, Paging, newest_first
from transcription.api.repetition import once_by_key
from transcription.api.resources.webhooks import (
    DeliveryOut,
    WebhookChange,
    WebhookIn,
    WebhookMade,
    WebhookOut,
)
from transcription.errors import NotFoundError
from transcription.services import webhooks
from webapp.accounts.models import Scope

MANAGES = Access(Scope.WEBHOOKS)

router = Router()


@router.get("", auth=MANAGES, response=Page[WebhookOut])
def list_webhooks(request: ApiRequest, paging: Query[Paging]) -> Page[WebhookOut]:
    """Your webhooks."""
    rows, next_cursor = newest_first(selectors.webhooks_of(request.auth), paging, by="created_at")
    return Page(items=[WebhookOut.of(row) for row in rows], next_cursor=next_cursor)


@router.post("", auth=MANAGES, response={201: WebhookMade})
@once_by_key()
def create_webhook(request: ApiRequest, webhook: WebhookIn) -> HttpResponse:
    """Be told of events at an address. The answer alone has the secret."""
    made = webhooks.create_webhook(owner=request.auth, **webhook.model_dump())
    answer = WebhookMade.model_validate(made)
    return tagged(request, answer, status=201, location=f"/api/v1/webhooks/{made.id}")


@router.get("/{webhook_id}", auth=MANAGES, response={200: WebhookOut, 304: None})
def read_webhook(request: ApiRequest, webhook_id: UUID) -> HttpResponse:
    """One of your webhooks."""
    return tagged(request, WebhookOut.of(selectors.access_webhook_by_id(request.auth, webhook_id)))


@router.patch("/{webhook_id}", auth=MANAGES, response=WebhookOut)
@checks_tag
def change_webhook(request: ApiRequest, webhook_id: UUID, change: WebhookChange) -> HttpResponse:
    """Change a webhook, or switch it off and on; on again, it starts anew."""
    with transaction.atomic():
        held = selectors.webhooks_of(request.auth).select_for_update()
        webhook = held.filter(id=webhook_id).first()
        if webhook is None:
            raise NotFoundError
        check_unchanged(request, WebhookOut.of(webhook))
        wanted = {
            name: getattr(webhook, name) for name in ("name", "url", "events", "is_active")
        } | change.model_dump(exclude_none=True)
        webhooks.change_webhook(webhook=webhook, **wanted)
    return tagged(request, WebhookOut.of(webhook))


@router.delete("/{webhook_id}", auth=MANAGES, response={204: None})
def delete_webhook(request: ApiRequest, webhook_id: UUID) -> HttpResponse:
    """Delete a webhook and its log; what waits is not sent."""
    webhooks.delete_webhook(webhook=selectors.access_webhook_by_id(request.auth, webhook_id))
    return HttpResponse(status=204)


@router.post("/{webhook_id}/test", auth=MANAGES, response={202: DeliveryOut})
def test_webhook(request: ApiRequest, webhook_id: UUID) -> HttpResponse:
    """Send the event `test`; its delivery says what became of it."""
    webhook = selectors.access_webhook_by_id(request.auth, webhook_id)
    delivery = webhooks.send_test(webhook=webhook)
    return tagged(request, DeliveryOut.of(delivery), status=202)


@router.post("/{webhook_id}/secret", auth=MANAGES, response=WebhookMade)
def rotate_webhook_secret(request: ApiRequest, webhook_id: UUID) -> HttpResponse:
    """Make a new secret, said in this answer alone; for a day both sign."""
    webhook = selectors.access_webhook_by_id(request.auth, webhook_id)
    return tagged(request, WebhookMade.model_validate(webhooks.rotate_secret(webhook=webhook)))


@router.get("/{webhook_id}/deliveries", auth=MANAGES, response=Page[DeliveryOut])
def list_deliveries(
    request: ApiRequest, webhook_id: UUID, paging: Query[Paging]
) -> Page[DeliveryOut]:
    """What was sent, and what waits; kept for thirty days."""
    webhook = selectors.access_webhook_by_id(request.auth, webhook_id)
    rows, next_cursor = newest_first(webhook.deliveries.all(), paging, by="created_at")
    return Page(items=[DeliveryOut.of(row) for row in rows], next_cursor=next_cursor)


@router.post("/deliveries/{delivery_id}/resend", auth=MANAGES, response={202: DeliveryOut})
def resend_delivery(request: ApiRequest, delivery_id: UUID) -> HttpResponse:
    """Send again what was given up, or delivered, under the same id."""
    delivery = selectors.access_delivery_by_id(request.auth, delivery_id)
    again = webhooks.resend_delivery(delivery=delivery)
    return tagged(request, DeliveryOut.of(again), status=202)
