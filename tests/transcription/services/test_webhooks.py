"""Webhooks: their owner's choices, and what they are told of."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.db import transaction
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from tests.fakes.live import final, make_session
from tests.fakes.recordings import claim_of, make_job, progress
from transcription.errors import ConflictError, InvalidInputError
from transcription.models import (
    DeliveryState,
    LiveState,
    RecordingState,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
)
from transcription.queue import Task
from transcription.services import jobs, live_sessions, webhooks
from webapp.accounts.models import Act, AuditEntry, User

ALL = tuple(webhooks.CHOICES)


@pytest.fixture(autouse=True)
def allowed(settings: Settings) -> None:
    settings.SITE = settings.SITE.model_copy(update={"webhook_hosts": "hooks.example.org"})


def make_webhook(owner: User, *events: str, **fields: Any) -> Webhook:
    values = {"name": "n8n", "url": "https://hooks.example.org/in", **fields}
    return webhooks.create_webhook(owner=owner, events=events or ALL, **values)


def told(event: WebhookEvent) -> list[dict[str, Any]]:
    rows = WebhookDelivery.objects.filter(event=event)
    return list(rows.values_list("payload", flat=True))


# Choices -----------------------------------------------------------------------------------------


def test_a_webhook_has_a_secret_and_an_entry_in_the_audit(alice: User) -> None:
    webhook = make_webhook(alice)
    assert webhook.secret.startswith("whsec_")
    assert len(webhook.secret) > 40
    entry = AuditEntry.objects.get(act=Act.WEBHOOK_CHANGED)
    assert (entry.actor, entry.subject_name) == (alice, "n8n")
    assert webhook.secret not in str(entry.detail)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": " "},
        {"name": "n" * 101},
        {"url": "https://elsewhere.example.org/"},
        {"url": "https://hooks.example.org/" + "x" * 500},
        {"events": ()},
        {"events": ("recording.ready", "everything")},
        {"events": ("test",)},
    ],
)
def test_a_wrong_webhook_is_refused(alice: User, fields: dict[str, Any]) -> None:
    values = {"name": "n8n", "url": "https://hooks.example.org/", "events": ALL, **fields}
    with pytest.raises(InvalidInputError):
        webhooks.create_webhook(owner=alice, **values)
    assert not Webhook.objects.exists()


def test_webhooks_of_a_person_are_limited(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "MAX_WEBHOOKS", 1)
    make_webhook(alice)
    with pytest.raises(ConflictError):
        make_webhook(alice)


def test_a_webhook_that_is_switched_on_again_starts_anew(alice: User) -> None:
    webhook = make_webhook(alice)
    Webhook.objects.update(is_active=False, disabled_reason="Nothing came through.", failures=9)
    webhook.refresh_from_db()
    webhooks.change_webhook(
        webhook=webhook,
        name=webhook.name,
        url=webhook.url,
        events=["live.ended"],
        is_active=True,
    )
    webhook.refresh_from_db()
    assert (webhook.is_active, webhook.disabled_reason, webhook.failures) == (True, "", 0)
    assert webhook.events == ["live.ended"]


def test_a_new_secret_leaves_the_one_before_for_a_day(alice: User) -> None:
    webhook = make_webhook(alice)
    before = webhook.secret
    webhooks.rotate_secret(webhook=webhook)
    webhook.refresh_from_db()
    assert webhook.secret != before
    assert webhook.previous_secret == before
    assert webhook.previous_secret_until is not None


def test_a_deleted_webhook_takes_its_log_along(alice: User) -> None:
    webhook = make_webhook(alice)
    webhooks.send_test(webhook=webhook)
    webhooks.delete_webhook(webhook=webhook)
    assert not WebhookDelivery.objects.exists()
    assert AuditEntry.objects.filter(act=Act.WEBHOOK_CHANGED).count() == 2


# What happened -----------------------------------------------------------------------------------


def test_a_finished_job_is_told_to_the_owner_alone(
    alice: User,
    bob: User,
    sent: list[Any],
    django_capture_on_commit_callbacks: Any,
) -> None:
    make_webhook(alice)
    make_webhook(bob)
    job = make_job(alice)
    claim = claim_of()
    jobs.store_progress(claim=claim, progress=progress("Hello."))
    with django_capture_on_commit_callbacks(execute=True):
        jobs.finish_job(claim=claim, model_name="scripted")
    delivery = WebhookDelivery.objects.get(event=WebhookEvent.RECORDING_READY)
    assert delivery.webhook.owner == alice
    assert delivery.payload == {
        "recording": str(job.recording_id),
        "job": str(job.id),
        "duration_ms": 60_000,
        "language": "en",
    }
    assert (Task.SEND_WEBHOOKS.value,) in sent


def test_a_failed_job_is_told_with_its_sentence(alice: User) -> None:
    make_webhook(alice, "job.failed")
    job = make_job(alice)
    jobs.fail_attempt(
        claim=claim_of(), code="no_audio", problem="There is no sound.", is_retryable=False
    )
    assert told(WebhookEvent.JOB_FAILED) == [
        {
            "recording": str(job.recording_id),
            "job": str(job.id),
            "code": "no_audio",
            "problem": "There is no sound.",
        }
    ]
    job.recording.refresh_from_db()
    assert job.recording.state == RecordingState.ATTENTION


def test_a_job_that_is_tried_again_is_not_told_as_failed(alice: User) -> None:
    make_webhook(alice)
    make_job(alice)
    jobs.fail_attempt(claim=claim_of(), code="lost", problem="Lost.", is_retryable=True)
    assert not WebhookDelivery.objects.exists()


def test_a_final_is_told_once_and_its_words_are_not_copied(alice: User) -> None:
    make_webhook(alice, "live.final")
    session = make_session(alice)
    for _ in range(2):
        live_sessions.record_final(event=final(session, 3, "A secret plan."))
    assert told(WebhookEvent.LIVE_FINAL) == [{"session": str(session.id), "utterance": 3}]


def test_a_final_costs_one_query_where_nobody_listens(
    alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    stored = live_sessions.record_final(event=final(make_session(alice), 0, "Hello."))
    assert stored is not None
    with django_assert_num_queries(1):
        webhooks.announce_final(stored)


def test_the_end_of_a_session_is_told(alice: User) -> None:
    make_webhook(alice, "live.ended")
    session = make_session(alice)
    live_sessions.start_live_session(session=session)
    live_sessions.end_live_session(session=session)
    for _ in range(2):
        live_sessions.finish_live_session(session_id=session.id, audio=None)
    session.refresh_from_db()
    assert session.state == LiveState.ENDED
    assert told(WebhookEvent.LIVE_ENDED) == [
        {"session": str(session.id), "reference": "", "recording": None, "duration_ms": 0}
    ]


def test_what_is_rolled_back_is_not_told(alice: User) -> None:
    make_webhook(alice)

    def cause() -> None:
        with transaction.atomic():
            webhooks.announce(
                event=WebhookEvent.RETENTION_PURGED, owner_id=alice.pk, subject="1", data={}
            )
            raise RuntimeError

    with pytest.raises(RuntimeError):
        cause()
    assert not WebhookDelivery.objects.exists()


def test_a_webhook_hears_what_it_asked_for_alone(alice: User) -> None:
    make_webhook(alice, "live.ended")
    Webhook.objects.create(
        owner=alice, name="off", url="https://hooks.example.org/", events=ALL, is_active=False
    )
    webhooks.announce(
        event=WebhookEvent.RETENTION_PURGED, owner_id=alice.pk, subject=str(uuid.uuid4()), data={}
    )
    assert not WebhookDelivery.objects.exists()


def test_a_failed_delivery_is_sent_again_by_hand_and_a_waiting_one_is_not(alice: User) -> None:
    delivery = webhooks.send_test(webhook=make_webhook(alice))
    with pytest.raises(ConflictError):
        webhooks.resend_delivery(delivery=delivery)
    WebhookDelivery.objects.update(state=DeliveryState.FAILED, attempts=9)
    again = webhooks.resend_delivery(delivery=delivery)
    assert (again.id, again.state, again.attempts) == (delivery.id, DeliveryState.WAITING, 0)
