"""What waits to be sent: turns, signatures, and what becomes of it."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from standardwebhooks.webhooks import Webhook as Library
from standardwebhooks.webhooks import WebhookVerificationError

from tests.fakes.live import final, make_session
from transcription.models import (
    DeliveryState,
    LiveSession,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
)
from transcription.services import live_sessions, webhook_deliveries, webhooks
from transcription.services.webhook_deliveries import (
    MAX_ATTEMPTS,
    RETRY_AFTER,
    Dispatch,
    Outcome,
    claim_deliveries,
    note_outcome,
)
from webapp.accounts.models import User

REFUSED = Outcome(500, "The address answered with status 500.")


@pytest.fixture
def webhook(alice: User) -> Webhook:
    return make_webhook(alice)


def make_webhook(owner: User, **fields: Any) -> Webhook:
    values: dict[str, Any] = {
        "name": "n8n",
        "url": "https://hooks.example.org/",
        "secret": "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0",
        "events": list(webhooks.CHOICES),
        **fields,
    }
    return Webhook.objects.create(owner=owner, **values)


def claim(limit: int = 16, busy: Any = None) -> list[Dispatch]:
    return claim_deliveries(limit=limit, busy=busy or Counter())


def make_due() -> None:
    WebhookDelivery.objects.update(next_attempt_at=timezone.now())


def test_a_library_for_standard_webhooks_accepts_what_is_sent(webhook: Webhook) -> None:
    delivery = webhooks.send_test(webhook=webhook)
    [dispatch] = claim()
    message = Library(webhook.secret).verify(dispatch.body, dispatch.headers)
    assert message["id"] == dispatch.headers["webhook-id"] == str(delivery.id)
    assert (message["type"], message["data"]) == ("test", {"said": "This is a test."})


@pytest.mark.parametrize("forgery", ["body", "id", "late"])
def test_a_library_refuses_what_was_changed_or_is_replayed_late(
    webhook: Webhook, forgery: str
) -> None:
    webhooks.send_test(webhook=webhook)
    [dispatch] = claim()
    body, headers = dispatch.body, dict(dispatch.headers)
    if forgery == "body":
        body = body.replace(b"test", b"Test")
    elif forgery == "id":
        headers["webhook-id"] = "another"
    else:
        headers["webhook-timestamp"] = str(int(headers["webhook-timestamp"]) - 301)
    with pytest.raises(WebhookVerificationError):
        Library(webhook.secret).verify(body, headers)


def test_both_secrets_sign_for_a_day_after_a_change(webhook: Webhook) -> None:
    before = webhook.secret
    webhooks.rotate_secret(webhook=webhook)
    webhooks.send_test(webhook=webhook)
    [dispatch] = claim()
    for secret in (before, webhook.secret):
        assert Library(secret).verify(dispatch.body, dispatch.headers)["type"] == "test"
    Webhook.objects.update(previous_secret_until=timezone.now() - timedelta(seconds=1))
    make_due()
    [dispatch] = claim()
    with pytest.raises(WebhookVerificationError):
        Library(before).verify(dispatch.body, dispatch.headers)


def test_a_final_leaves_with_the_words_that_were_told_live(webhook: Webhook, alice: User) -> None:
    session = make_session(alice)
    stored = live_sessions.record_final(event=final(session, 0, "Good morning."))
    assert stored is not None
    live_sessions.record_refined(utterance_id=stored.pk, text="Good mourning.", words=[])
    [dispatch] = claim()
    data = json.loads(dispatch.body)["data"]
    assert (data["text"], data["utterance"], data["end_ms"]) == ("Good morning.", 0, 900)
    assert data["words"][0]["text"] == "Good morning."


def test_words_that_were_deleted_meanwhile_are_never_sent(webhook: Webhook, alice: User) -> None:
    session = make_session(alice)
    live_sessions.record_final(event=final(session, 0, "Forget this."))
    LiveSession.objects.all().delete()
    assert claim() == []
    delivery = WebhookDelivery.objects.get()
    assert delivery.state == DeliveryState.FAILED
    assert delivery.problem == webhook_deliveries.DELETED_PROBLEM


def test_a_claimed_delivery_is_nobody_elses_until_its_next_attempt(webhook: Webhook) -> None:
    webhooks.send_test(webhook=webhook)
    before = timezone.now()
    [dispatch] = claim()
    assert dispatch.attempt == 1
    assert claim() == []
    delivery = WebhookDelivery.objects.get()
    assert delivery.next_attempt_at >= before + RETRY_AFTER[0]


def test_a_sender_that_was_killed_costs_a_repetition_under_the_same_id(webhook: Webhook) -> None:
    webhooks.send_test(webhook=webhook)
    [first] = claim()
    make_due()  # nothing was noted of the first attempt, and time went by
    [second] = claim()
    assert (second.attempt, second.headers["webhook-id"]) == (2, first.headers["webhook-id"])


def test_a_refused_event_is_given_up_after_its_last_attempt_and_the_webhook_with_it(
    webhook: Webhook,
) -> None:
    webhooks.send_test(webhook=webhook)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        assert WebhookDelivery.objects.get().state == DeliveryState.WAITING
        make_due()
        [dispatch] = claim()
        assert dispatch.attempt == attempt
        note_outcome(dispatch=dispatch, outcome=REFUSED)
    delivery = WebhookDelivery.objects.get()
    assert (delivery.state, delivery.response_status) == (DeliveryState.FAILED, 500)
    webhook.refresh_from_db()
    assert not webhook.is_active
    assert webhook.disabled_reason == webhook_deliveries.GIVEN_UP_REASON


def test_attempts_go_on_for_most_of_a_day() -> None:
    assert timedelta(hours=20) < sum(RETRY_AFTER, timedelta()) < timedelta(hours=24)
    assert list(RETRY_AFTER) == sorted(RETRY_AFTER)


def test_one_unwelcome_event_does_not_end_a_webhook_that_works(webhook: Webhook) -> None:
    webhooks.send_test(webhook=webhook)
    WebhookDelivery.objects.update(attempts=MAX_ATTEMPTS - 1)
    [last] = claim()
    webhooks.send_test(webhook=webhook)
    [other] = claim()
    note_outcome(dispatch=other, outcome=Outcome(200))
    note_outcome(dispatch=last, outcome=REFUSED)
    webhook.refresh_from_db()
    assert (webhook.is_active, webhook.failures) == (True, 1)


def test_an_address_that_is_gone_is_asked_no_more(webhook: Webhook) -> None:
    webhooks.send_test(webhook=webhook)
    [dispatch] = claim()
    note_outcome(dispatch=dispatch, outcome=Outcome(410, "Gone."))
    webhook.refresh_from_db()
    assert (webhook.is_active, webhook.disabled_reason) == (
        False,
        webhook_deliveries.GONE_REASON,
    )
    assert WebhookDelivery.objects.get().state == DeliveryState.FAILED


def test_what_was_delivered_stays_so_whatever_a_late_attempt_says(webhook: Webhook) -> None:
    webhooks.send_test(webhook=webhook)
    [slow] = claim()
    make_due()
    [quick] = claim()
    note_outcome(dispatch=quick, outcome=Outcome(200))
    note_outcome(dispatch=slow, outcome=REFUSED)
    delivery = WebhookDelivery.objects.get()
    assert (delivery.state, delivery.problem) == (DeliveryState.DELIVERED, "")


def test_a_last_attempt_that_was_killed_is_given_up(webhook: Webhook) -> None:
    webhooks.send_test(webhook=webhook)
    WebhookDelivery.objects.update(attempts=MAX_ATTEMPTS)
    assert claim() == []
    delivery = WebhookDelivery.objects.get()
    assert (delivery.state, delivery.problem) == (
        DeliveryState.FAILED,
        webhook_deliveries.KILLED_PROBLEM,
    )


def test_one_with_much_to_tell_leaves_places_for_others(
    webhook: Webhook, alice: User, bob: User
) -> None:
    for _ in range(20):
        webhooks.send_test(webhook=webhook)
    webhooks.send_test(webhook=make_webhook(bob))
    owners = Counter(dispatch.webhook_id for dispatch in claim())
    assert sorted(owners.values()) == [1, webhook_deliveries.AT_ONCE]
    assert claim(busy={webhook.id: webhook_deliveries.AT_ONCE}) == []


def test_one_that_failed_last_gets_a_single_place(webhook: Webhook) -> None:
    Webhook.objects.update(failures=1)
    for _ in range(3):
        webhooks.send_test(webhook=webhook)
    assert len(claim()) == 1


def test_nothing_leaves_for_a_person_who_is_disabled(webhook: Webhook, alice: User) -> None:
    webhooks.send_test(webhook=webhook)
    User.objects.update(is_active=False)
    assert claim() == []


def test_the_log_is_kept_for_a_month(webhook: Webhook) -> None:
    old = webhooks.send_test(webhook=webhook)
    new = webhooks.send_test(webhook=webhook)
    created = timezone.now() - webhook_deliveries.KEPT_FOR - timedelta(seconds=1)
    WebhookDelivery.objects.filter(id=old.id).update(created_at=created)
    assert webhook_deliveries.forget_deliveries() == 1
    assert WebhookDelivery.objects.get() == new


def test_a_test_is_an_event_of_its_own(webhook: Webhook) -> None:
    webhooks.send_test(webhook=webhook)
    webhooks.send_test(webhook=webhook)
    assert WebhookDelivery.objects.filter(event=WebhookEvent.TEST).count() == 2
