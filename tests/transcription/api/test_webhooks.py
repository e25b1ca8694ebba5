"""REST v1: webhooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from transcription.models import DeliveryState, Webhook, WebhookDelivery
from transcription.services import webhooks
from webapp.accounts.models import ApiToken, Scope, User

ClientOf = Callable[[User | None], Client]
LIST = "/api/v1/webhooks"


@pytest.fixture(autouse=True)
def allowed(settings: Settings) -> None:
    settings.SITE = settings.SITE.model_copy(update={"webhook_hosts": "hooks.example.org"})


@pytest.fixture
def webhook(alice: User) -> Webhook:
    return make_webhook(alice)


def make_webhook(owner: User) -> Webhook:
    return webhooks.create_webhook(
        owner=owner, name="n8n", url="https://hooks.example.org/in", events=["live.ended"]
    )


def body(**members: Any) -> dict[str, Any]:
    return {
        "name": "Archive",
        "url": "https://hooks.example.org/archive",
        "events": ["recording.ready"],
        **members,
    }


def post(client: Client, path: str, data: Any = None, **headers: str) -> Any:
    return client.post(path, data or {}, content_type="application/json", headers=headers)


def test_a_webhook_is_made_and_its_secret_said_once(client_of: ClientOf, alice: User) -> None:
    client = client_of(alice)
    response = post(client, LIST, body())
    assert response.status_code == 201
    made = response.json()
    assert made["secret"] == Webhook.objects.get().secret
    assert response["Location"].endswith(f"{LIST}/{made['id']}")
    told = client.get(f"{LIST}/{made['id']}").json()
    assert "secret" not in told
    assert (told["name"], told["events"], told["is_active"]) == (
        "Archive",
        ["recording.ready"],
        True,
    )


def test_a_repeated_request_makes_one_webhook(client_of: ClientOf, alice: User) -> None:
    client = client_of(alice)
    first, second = (post(client, LIST, body(), Idempotency_Key="one") for _ in range(2))
    assert first.json() == second.json()
    assert Webhook.objects.count() == 1


@pytest.mark.parametrize(
    "members",
    [
        {"url": "https://elsewhere.example.org/"},
        {"url": "http://169.254.169.254/latest"},
        {"events": []},
        {"events": ["everything"]},
        {"events": ["test"]},
        {"name": ""},
        {"name": "a\0b"},
    ],
)
def test_a_wrong_webhook_is_refused(
    client_of: ClientOf, alice: User, members: dict[str, Any]
) -> None:
    response = post(client_of(alice), LIST, body(**members))
    assert (response.status_code, response.json()["code"]) == (400, "invalid_input")
    assert not Webhook.objects.exists()


def test_a_change_leaves_what_it_does_not_name(
    client_of: ClientOf, alice: User, webhook: Webhook
) -> None:
    client = client_of(alice)
    seen = client.get(f"{LIST}/{webhook.id}")
    response = client.patch(
        f"{LIST}/{webhook.id}",
        {"is_active": False},
        content_type="application/json",
        headers={"If-Match": seen["ETag"]},
    )
    assert response.status_code == 200
    assert (response.json()["name"], response.json()["is_active"]) == ("n8n", False)
    stale = client.patch(
        f"{LIST}/{webhook.id}",
        {"name": "Other"},
        content_type="application/json",
        headers={"If-Match": seen["ETag"]},
    )
    assert stale.status_code == 412


def test_a_test_is_queued_and_stands_in_the_log(
    client_of: ClientOf, alice: User, webhook: Webhook
) -> None:
    client = client_of(alice)
    response = post(client, f"{LIST}/{webhook.id}/test")
    assert (response.status_code, response.json()["state"]) == (202, "waiting")
    log = client.get(f"{LIST}/{webhook.id}/deliveries").json()
    assert [item["id"] for item in log["items"]] == [response.json()["id"]]
    WebhookDelivery.objects.update(state=DeliveryState.FAILED, attempts=9)
    again = post(client, f"{LIST}/deliveries/{response.json()['id']}/resend")
    assert (again.status_code, again.json()["attempts"]) == (202, 0)
    assert post(client, f"{LIST}/deliveries/{response.json()['id']}/resend").status_code == 409


def test_a_new_secret_is_said_once(client_of: ClientOf, alice: User, webhook: Webhook) -> None:
    before = webhook.secret
    response = post(client_of(alice), f"{LIST}/{webhook.id}/secret")
    webhook.refresh_from_db()
    assert response.json()["secret"] == webhook.secret != before


def test_a_webhook_is_deleted(client_of: ClientOf, alice: User, webhook: Webhook) -> None:
    client = client_of(alice)
    assert client.delete(f"{LIST}/{webhook.id}").status_code == 204
    assert client.get(f"{LIST}/{webhook.id}").status_code == 404


def test_a_stranger_gets_404_and_an_empty_list(
    client_of: ClientOf, charlie: User, webhook: Webhook
) -> None:
    client = client_of(charlie)
    delivery = webhooks.send_test(webhook=webhook)
    assert client.get(LIST).json() == {"items": [], "next_cursor": None}
    one = f"{LIST}/{webhook.id}"
    answers = [
        client.get(one),
        client.get(f"{one}/deliveries"),
        client.patch(one, {"name": "Mine"}, content_type="application/json"),
        client.delete(one),
        post(client, f"{one}/test"),
        post(client, f"{one}/secret"),
        post(client, f"{LIST}/deliveries/{delivery.id}/resend"),
    ]
    assert {answer.status_code for answer in answers} == {404}
    assert Webhook.objects.get().name == "n8n"


def test_anonymous_is_refused(client_of: ClientOf, webhook: Webhook) -> None:
    for path in (LIST, f"{LIST}/{webhook.id}", f"{LIST}/{webhook.id}/deliveries"):
        assert client_of(None).get(path).status_code == 401


def test_a_token_needs_the_scope(alice: User) -> None:
    for scopes, status in (([Scope.RECORDINGS_READ], 403), ([Scope.WEBHOOKS], 200)):
        _, secret = ApiToken.issue(user=alice, name="tool", scopes=scopes)
        response = Client().get(LIST, headers={"Authorization": f"Bearer {secret}"})
        assert response.status_code == status


def test_the_list_takes_as_many_queries_for_many(
    client_of: ClientOf, alice: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(5):
        make_webhook(alice)
    client = client_of(alice)
    with django_assert_max_num_queries(4):
        assert len(client.get(LIST).json()["items"]) == 5
