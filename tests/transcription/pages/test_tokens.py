"""The page of a person's tokens: made with scopes and an end, shown once, revoked by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from webapp.accounts.models import ApiToken, Scope, User
from webapp.accounts.tokens import scopes_open_to, token_of_secret

ClientOf = Callable[[User | None], Client]
PAGE = "/profile/tokens/"
FORM = {"name": "Screen <b>", "scopes": ["live:read"], "lifetime": "30"}
SECRET = re.compile(r"tr_[\w-]{43}")


def test_token_is_made_with_what_was_chosen_and_shown_once(
    alice: User, client_of: ClientOf
) -> None:
    client = client_of(alice)
    answer = client.post(PAGE, FORM)
    secrets = set(SECRET.findall(answer.content.decode()))
    token = token_of_secret(secrets.pop())
    assert token is not None
    assert (token.user, token.name, token.scopes) == (alice, "Screen <b>", ["live:read"])
    assert token.expires_at is not None
    assert timedelta(days=29) < token.expires_at - timezone.now() < timedelta(days=31)
    assert "no-store" in answer["Cache-Control"]
    page = client.get(PAGE).content.decode()
    assert not SECRET.search(page)
    assert "Screen &lt;b&gt;" in page


def test_page_offers_each_scope_that_its_person_can_give(
    alice: User, administrator: User, client_of: ClientOf
) -> None:
    for person in (alice, administrator):
        page = client_of(person).get(PAGE).content.decode()
        offered = re.findall(r'<input type="checkbox" name="scopes" value="([a-z:]+)"', page)
        assert offered == [scope.value for scope in scopes_open_to(person)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"scopes": []},
        {"scopes": ["live:read", "administration"]},
        {"scopes": ["monitor"]},
        {"scopes": ["nonsense"]},
        {"lifetime": ""},
        {"lifetime": "100000"},
    ],
    ids=lambda wrong: f"{next(iter(wrong))}={next(iter(wrong.values()))}",
)
def test_what_cannot_be_is_refused_in_words(
    wrong: dict[str, object], alice: User, client_of: ClientOf
) -> None:
    answer = client_of(alice).post(PAGE, FORM | wrong)
    assert answer.status_code == 400
    assert b"field-error" in answer.content
    assert not ApiToken.objects.exists()


def test_administrators_may_give_their_own_rights(administrator: User, client_of: ClientOf) -> None:
    scopes = ["administration", "monitor"]
    assert client_of(administrator).post(PAGE, FORM | {"scopes": scopes}).status_code == 200
    assert ApiToken.objects.get().scopes == scopes


def test_revoking_asks_by_name_and_then_ends_it(alice: User, client_of: ClientOf) -> None:
    token, secret = ApiToken.issue(user=alice, name="Screen", scopes=[Scope.LIVE_READ])
    client = client_of(alice)
    address = f"{PAGE}{token.pk}/revoke/"
    assert "Revoke “Screen”?" in client.get(address).content.decode()
    assert token_of_secret(secret) is not None
    page = client.post(address, follow=True).content.decode()
    assert token_of_secret(secret) is None
    assert "“Screen” is revoked" in page
    assert address not in page


def test_nobody_else_sees_or_revokes_it(
    alice: User, bob: User, administrator: User, client_of: ClientOf
) -> None:
    token, secret = ApiToken.issue(user=alice, name="Screen")
    address = f"{PAGE}{token.pk}/revoke/"
    for other in (bob, administrator):
        assert "Screen" not in client_of(other).get(PAGE).content.decode()
        assert client_of(other).get(address).status_code == 404
        assert client_of(other).post(address).status_code == 404
    for verb in ("get", "post"):
        assert getattr(client_of(None), verb)(address).status_code == 302
    assert client_of(None).get(PAGE)["Location"].startswith("/accounts/login/")
    assert token_of_secret(secret) is not None


def test_many_tokens_cost_no_more_queries(
    alice: User,
    client_of: ClientOf,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(20):
        ApiToken.issue(user=alice, name=f"tool {number}")
    client = client_of(alice)
    with django_assert_max_num_queries(5):
        assert "tool 19" in client.get(PAGE).content.decode()
