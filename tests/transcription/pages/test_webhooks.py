"""A person's webhooks are theirs alone; the secret is shown once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from transcription.models import DeliveryState, Webhook, WebhookDelivery
from transcription.services import webhooks
from webapp.accounts.models import User

ClientOf = Callable[[User | None], Client]
LIST = "/profile/webhooks/"
ACTS = ("", "test/", "secret/", "delete/")


@pytest.fixture(autouse=True)
def allowed(settings: Settings) -> None:
    settings.SITE = settings.SITE.model_copy(update={"webhook_hosts": "hooks.example.org"})


@pytest.fixture
def webhook(alice: User) -> Webhook:
    return webhooks.create_webhook(
        owner=alice, name="n8n", url="https://hooks.example.org/in", events=["live.ended"]
    )


def form(**fields: Any) -> dict[str, Any]:
    return {
        "name": "Archive",
        "url": "https://hooks.example.org/archive",
        "events": ["recording.ready", "job.failed"],
        **fields,
    }


def page_of(webhook: Webhook, part: str = "") -> str:
    return f"{LIST}{webhook.id}/{part}"


def test_a_new_webhook_shows_its_secret_in_this_answer_alone(
    alice: User, client_of: ClientOf
) -> None:
    client = client_of(alice)
    response = client.post(LIST, form())
    made = Webhook.objects.get()
    assert (made.owner, made.name, made.events) == (
        alice,
        "Archive",
        ["job.failed", "recording.ready"],
    )
    assert made.secret in response.content.decode()
    assert "no-store" in response["Cache-Control"]
    for address in (LIST, page_of(made)):
        later = client.get(address)
        assert later.status_code == 200
        assert made.secret not in later.content.decode()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"url": "https://elsewhere.example.org/"}, "has not allowed webhooks to this address"),
        ({"url": "nonsense"}, "must begin with https"),
        ({"events": []}, "Choose at least one"),
        ({"name": ""}, "required"),
    ],
)
def test_a_wrong_entry_is_said_beside_its_field(
    alice: User, client_of: ClientOf, fields: dict[str, Any], sentence: str
) -> None:
    response = client_of(alice).post(LIST, form(**fields))
    assert response.status_code == 400
    assert sentence in response.content.decode()
    assert not Webhook.objects.exists()


def test_where_nothing_is_allowed_the_page_says_so(
    alice: User, client_of: ClientOf, settings: Settings
) -> None:
    settings.SITE = settings.SITE.model_copy(update={"webhook_hosts": ""})
    page = client_of(alice).get(LIST).content.decode()
    assert "has allowed no address for webhooks yet" in page
    assert "Make the webhook" not in page


def test_changes_are_stored(alice: User, webhook: Webhook, client_of: ClientOf) -> None:
    response = client_of(alice).post(page_of(webhook), form())  # without the mark: switched off
    assert response.status_code == 302
    webhook.refresh_from_db()
    assert (webhook.name, webhook.is_active) == ("Archive", False)


def test_a_wrong_change_leaves_what_is_stored(
    alice: User, webhook: Webhook, client_of: ClientOf
) -> None:
    response = client_of(alice).post(page_of(webhook), form(url="https://10.0.0.1/"))
    assert response.status_code == 400
    webhook.refresh_from_db()
    assert (webhook.name, webhook.url) == ("n8n", "https://hooks.example.org/in")


def test_a_test_is_sent_and_stands_in_the_log(
    alice: User, webhook: Webhook, client_of: ClientOf
) -> None:
    client = client_of(alice)
    assert client.post(page_of(webhook, "test/")).status_code == 302
    page = client.get(page_of(webhook)).content.decode()
    assert re.search(r"Test\s.*Waiting", page, re.DOTALL)
    WebhookDelivery.objects.update(problem="The address could not be reached.", attempts=2)
    page = client.get(page_of(webhook)).content.decode()
    assert "Will be tried again" in page
    assert "The address could not be reached." in page


def test_what_was_given_up_is_sent_again(
    alice: User, webhook: Webhook, client_of: ClientOf
) -> None:
    delivery = webhooks.send_test(webhook=webhook)
    WebhookDelivery.objects.update(state=DeliveryState.FAILED)
    response = client_of(alice).post(f"{LIST}deliveries/{delivery.id}/")
    assert response.status_code == 302
    delivery.refresh_from_db()
    assert delivery.state == DeliveryState.WAITING


def test_a_new_secret_is_shown_once(alice: User, webhook: Webhook, client_of: ClientOf) -> None:
    client, before = client_of(alice), webhook.secret
    response = client.post(page_of(webhook, "secret/"))
    webhook.refresh_from_db()
    assert webhook.secret != before
    assert webhook.secret in response.content.decode()
    assert before not in response.content.decode()
    assert webhook.secret not in client.get(page_of(webhook)).content.decode()


def test_deleting_asks_by_name_and_deletes(
    alice: User, webhook: Webhook, client_of: ClientOf
) -> None:
    client = client_of(alice)
    assert "Delete the webhook n8n" in client.get(page_of(webhook)).content.decode()
    assert client.post(page_of(webhook, "delete/")).status_code == 302
    assert not Webhook.objects.exists()


def test_a_stopped_webhook_says_why(alice: User, webhook: Webhook, client_of: ClientOf) -> None:
    Webhook.objects.update(is_active=False, disabled_reason="The address said that it is gone.")
    client = client_of(alice)
    assert "Stopped" in client.get(LIST).content.decode()
    assert "The address said that it is gone." in client.get(page_of(webhook)).content.decode()


@pytest.mark.parametrize("part", ACTS)
def test_others_get_404_and_change_nothing(
    charlie: User, administrator: User, webhook: Webhook, client_of: ClientOf, part: str
) -> None:
    before = Webhook.objects.values().get()
    for person in (charlie, administrator):
        client = client_of(person)
        assert client.post(page_of(webhook, part), form()).status_code == 404
        assert client.get(page_of(webhook)).status_code == 404
        assert "n8n" not in client.get(LIST).content.decode()
    assert Webhook.objects.values().get() == before
    assert not WebhookDelivery.objects.exists()


def test_others_send_nothing_again(charlie: User, webhook: Webhook, client_of: ClientOf) -> None:
    delivery = webhooks.send_test(webhook=webhook)
    WebhookDelivery.objects.update(state=DeliveryState.FAILED)
    assert client_of(charlie).post(f"{LIST}deliveries/{delivery.id}/").status_code == 404
    delivery.refresh_from_db()
    assert delivery.state == DeliveryState.FAILED


@pytest.mark.parametrize("part", ACTS)
def test_anonymous_is_sent_to_the_log_in(webhook: Webhook, client_of: ClientOf, part: str) -> None:
    response = client_of(None).post(page_of(webhook, part), form())
    assert response.status_code == 302
    assert "/accounts/login/" in response["Location"]


def test_names_are_text(alice: User, client_of: ClientOf) -> None:
    page = client_of(alice).post(LIST, form(name="<script>alert(1)</script>")).content.decode()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
