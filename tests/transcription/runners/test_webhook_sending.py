"""The chore that sends, against receivers that fail, hang, drip and lead elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.utils import timezone
from pytest_django.fixtures import Settings
from standardwebhooks.webhooks import Webhook as Library

from tests.fakes.databases import database_url
from tests.fakes.receiver import Receiver, receiver
from transcription.models import DeliveryState, Webhook, WebhookDelivery
from transcription.runners import webhook_requests, webhook_sending
from transcription.services import webhooks
from webapp.accounts.models import User

ROOT = Path(__file__).resolve().parent.parent.parent.parent
SENDER = """
import django
django.setup()
from transcription.runners.webhook_sending import send_webhooks
send_webhooks()
"""


@pytest.fixture(autouse=True)
def allowed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.SITE = settings.SITE.model_copy(update={"webhook_hosts": "127.0.0.1"})
    monkeypatch.setattr(webhook_requests, "TIMEOUT_S", 0.5)


@pytest.fixture
def tool() -> Iterator[Receiver]:
    with receiver() as tool:
        yield tool


def make_webhook(owner: User, url: str) -> Webhook:
    return webhooks.create_webhook(owner=owner, name="tool", url=url, events=list(webhooks.CHOICES))


def send_to(owner: User, url: str) -> WebhookDelivery:
    delivery = webhooks.send_test(webhook=make_webhook(owner, url))
    assert webhook_sending.send_webhooks() == 1
    delivery.refresh_from_db()
    return delivery


def test_a_receiver_gets_what_it_can_verify(alice: User, tool: Receiver) -> None:
    delivery = send_to(alice, tool.url + "?from=us")
    assert (delivery.state, delivery.response_status) == (DeliveryState.DELIVERED, 204)
    [received] = tool.received
    assert received.path == "/hook?from=us"
    assert received.headers["host"] == f"127.0.0.1:{tool.port}"
    assert "authorization" not in received.headers
    message = Library(delivery.webhook.secret).verify(received.body, received.headers)
    assert message["type"] == "test"


def test_a_receiver_that_fails_is_asked_again_later(alice: User, tool: Receiver) -> None:
    tool.status = 503
    delivery = send_to(alice, tool.url)
    assert (delivery.state, delivery.response_status) == (DeliveryState.WAITING, 503)
    assert delivery.problem == "The address answered with status 503."
    assert delivery.next_attempt_at > timezone.now()
    assert webhook_sending.send_webhooks() == 0
    tool.status = 200
    WebhookDelivery.objects.update(next_attempt_at=timezone.now())
    assert webhook_sending.send_webhooks() == 1
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == (DeliveryState.DELIVERED, 2)
    first, second = (json.loads(received.body) for received in tool.received)
    assert first == second


@pytest.mark.parametrize("fault", ["hangs", "drips"])
def test_a_receiver_without_an_end_is_left(alice: User, tool: Receiver, fault: str) -> None:
    setattr(tool, fault, True)
    delivery = send_to(alice, tool.url)
    assert delivery.state == DeliveryState.WAITING
    assert delivery.problem.startswith("The address did not answer within")
    assert len(tool.received) == 1


def test_a_receiver_that_hangs_keeps_no_other_waiting(
    alice: User, bob: User, tool: Receiver
) -> None:
    tool.hangs = True
    with receiver() as other:
        webhooks.send_test(webhook=make_webhook(alice, tool.url))
        prompt = webhooks.send_test(webhook=make_webhook(bob, other.url))
        assert webhook_sending.send_webhooks() == 2
    prompt.refresh_from_db()
    assert prompt.state == DeliveryState.DELIVERED


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirection_to_a_private_address_is_not_followed(
    alice: User, tool: Receiver, status: int
) -> None:
    with receiver() as private:
        tool.status, tool.location = status, private.url
        delivery = send_to(alice, tool.url)
        assert private.received == []
    assert (delivery.state, delivery.response_status) == (DeliveryState.WAITING, status)
    assert "elsewhere" in delivery.problem


def test_a_name_is_looked_up_once_and_the_judged_address_is_asked(
    alice: User, tool: Receiver, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """A name whose second lookup leads elsewhere (DNS rebinding) gains nothing."""
    settings.SITE = settings.SITE.model_copy(update={"webhook_hosts": "127.0.0.1/32"})
    real, answers = webhook_requests.resolve, []

    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        answers.append(host)
        address = "127.0.0.1" if len(answers) == 1 else "127.0.0.2"
        return [(2, 1, 6, "", (address, port))]

    def resolve(target: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr("socket.getaddrinfo", getaddrinfo)
            return real(target)

    monkeypatch.setattr(webhook_requests, "resolve", resolve)
    delivery = send_to(alice, f"http://tool.example.org:{tool.port}/hook")
    assert delivery.state == DeliveryState.DELIVERED
    assert answers == ["tool.example.org"]
    assert tool.received[0].headers["host"] == f"tool.example.org:{tool.port}"


def test_an_address_that_is_allowed_no_more_is_not_asked(
    alice: User, tool: Receiver, settings: Settings
) -> None:
    webhook = make_webhook(alice, tool.url)
    delivery = webhooks.send_test(webhook=webhook)
    settings.SITE = settings.SITE.model_copy(update={"webhook_hosts": "10.0.0.0/8"})
    webhook_sending.send_webhooks()
    delivery.refresh_from_db()
    assert tool.received == []
    assert "not allowed" in delivery.problem


def test_a_proxy_of_the_environment_sees_nothing(
    alice: User, tool: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiver() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")
        delivery = send_to(alice, tool.url)
        assert proxy.received == []
    assert delivery.state == DeliveryState.DELIVERED


def test_an_address_where_nobody_listens_is_said_so(alice: User) -> None:
    with receiver() as gone:
        url = gone.url
    assert send_to(alice, url).problem == "The address could not be reached."


def test_one_that_does_not_speak_http_is_said_so(alice: User, tool: Receiver) -> None:
    delivery = send_to(alice, tool.url.replace("http:", "https:"))
    assert delivery.state == DeliveryState.WAITING
    assert delivery.problem


@pytest.mark.django_db(transaction=True)
def test_a_sender_that_is_killed_in_the_middle_loses_nothing(alice: User, tool: Receiver) -> None:
    tool.hangs = True
    delivery = webhooks.send_test(webhook=make_webhook(alice, tool.url))
    sender = subprocess.Popen(
        [sys.executable, "-c", SENDER],
        cwd=ROOT,
        env={
            **os.environ,
            "TRANSCRIBE_DATABASE_URL": database_url(),
            "TRANSCRIBE_WEBHOOK_HOSTS": "127.0.0.1",
        },
    )
    try:
        assert tool.was_asked.wait(60)
    finally:
        sender.kill()
        sender.wait()
        cache.delete(webhook_sending.HELD_KEY)  # it runs out by itself
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == (DeliveryState.WAITING, 1)
    tool.hangs = False
    WebhookDelivery.objects.update(next_attempt_at=timezone.now())
    assert webhook_sending.send_webhooks() == 1
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == (DeliveryState.DELIVERED, 2)
    ids = [received.headers["webhook-id"] for received in tool.received]
    assert ids == [str(delivery.id)] * 2


def test_two_chores_at_once_do_not_wait_for_one_receiver(alice: User, tool: Receiver) -> None:
    webhooks.send_test(webhook=make_webhook(alice, tool.url))
    cache.set(webhook_sending.HELD_KEY, "1", timeout=5)
    try:
        assert webhook_sending.send_webhooks() == 0
    finally:
        cache.delete(webhook_sending.HELD_KEY)
    assert tool.received == []
