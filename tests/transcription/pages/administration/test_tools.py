"""Tools: service accounts, their tokens, and those of people. (Strangers: `test_frame`.)"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from tests.fakes.people import PASSWORD
from webapp.accounts.models import Act, ApiToken, AuditEntry, Role, Scope, User
from webapp.accounts.service_accounts import make_service_account
from webapp.accounts.tokens import token_of_secret

PAGE = "/administration/tools/"
FORM = {"name": "Trunk 1", "scopes": ["live:write", "monitor"], "lifetime": ""}
SECRET = re.compile(r"tr_[\w-]{43}")


@pytest.fixture
def client(administrator: User, client_of: Callable[[User], Client]) -> Client:
    return client_of(administrator)


@pytest.fixture
def exchange(db: None) -> User:
    return make_service_account(name="Telephone exchange", made_by=None)


def test_service_account_is_made_and_cannot_log_in(client: Client) -> None:
    page = client.post(PAGE, {"name": " Telephone exchange "}, follow=True).content.decode()
    account = User.objects.get(role=Role.SERVICE)
    assert (account.name, account.email) == (
        "Telephone exchange",
        "telephone-exchange@service.invalid",
    )
    assert "“Telephone exchange” is made" in page
    assert not account.has_usable_password()
    assert not Client().login(email=account.email, password=PASSWORD)
    assert AuditEntry.objects.filter(act=Act.CREATED, subject_id=str(account.pk)).exists()


@pytest.mark.parametrize("name", ["", "  ", "telephone EXCHANGE"])
def test_nameless_and_second_of_a_name_are_refused_in_words(
    name: str, client: Client, exchange: User
) -> None:
    answer = client.post(PAGE, {"name": name})
    assert answer.status_code == 400
    assert b"field-error" in answer.content
    assert User.objects.filter(role=Role.SERVICE).get() == exchange


def test_names_that_come_to_one_address_are_told_apart(exchange: User) -> None:
    other = make_service_account(name="Telephone-exchange", made_by=None)
    unnamed = make_service_account(name="电话", made_by=None)
    assert len({exchange.email, other.email, unnamed.email}) == 3


def test_token_of_a_service_account_may_last(client: Client, exchange: User) -> None:
    answer = client.post(f"{PAGE}{exchange.pk}/", FORM)
    token = token_of_secret(SECRET.findall(answer.content.decode())[0])
    assert token is not None
    assert (token.user, token.scopes, token.expires_at) == (exchange, FORM["scopes"], None)
    assert not SECRET.search(client.get(f"{PAGE}{exchange.pk}/").content.decode())
    made = AuditEntry.objects.get(act=Act.TOKEN_MADE)
    assert made.actor_name == "admin@example.org"


def test_service_account_gives_no_right_of_an_administrator(client: Client, exchange: User) -> None:
    answer = client.post(f"{PAGE}{exchange.pk}/", FORM | {"scopes": ["administration"]})
    assert answer.status_code == 400
    assert not ApiToken.objects.exists()


def test_disabled_account_opens_nothing_until_it_is_enabled(client: Client, exchange: User) -> None:
    _, secret = ApiToken.issue(user=exchange, name="Trunk 1")
    client.post(f"{PAGE}{exchange.pk}/state/", {"disable": ""})
    assert token_of_secret(secret) is None
    assert "Disabled" in client.get(PAGE).content.decode()
    client.post(f"{PAGE}{exchange.pk}/state/", {"enable": ""})
    assert token_of_secret(secret) is not None


@pytest.mark.parametrize("kind", ["person", "account"])
def test_administrators_revoke_any_token(
    kind: str, client: Client, exchange: User, alice: User
) -> None:
    owner, back = (exchange, f"{PAGE}{exchange.pk}/") if kind == "account" else (alice, PAGE)
    token, secret = ApiToken.issue(user=owner, name="Screen", scopes=[Scope.LIVE_READ])
    address = f"{PAGE}tokens/{token.pk}/revoke/"
    assert f"It belongs to {owner}" in client.get(address).content.decode()
    assert client.post(address)["Location"] == back
    assert token_of_secret(secret) is None


def test_people_are_no_service_accounts(client: Client, alice: User) -> None:
    assert client.get(f"{PAGE}{alice.pk}/").status_code == 404
    assert client.post(f"{PAGE}{alice.pk}/", FORM).status_code == 404
    client.post(f"{PAGE}{alice.pk}/state/", {"disable": ""})
    alice.refresh_from_db()
    assert alice.is_active
    assert client.get(f"{PAGE}tokens/1/revoke/").status_code == 404


def test_many_tools_cost_no_more_queries(
    client: Client, alice: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(10):
        account = make_service_account(name=f"tool {number}", made_by=None)
        ApiToken.issue(user=account, name="its token")
        ApiToken.issue(user=alice, name=f"script {number}")
    with django_assert_max_num_queries(7):
        page = client.get(PAGE).content.decode()
    assert "1 valid token " in page
    assert "script 9" in page
