"""Second factors without a browser: the app's code, recovery codes, and who may not come in."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from allauth.mfa.models import Authenticator
from django.core.cache import cache
from django.test import Client

from tests.fakes.authenticator_app import code_of
from tests.fakes.people import PASSWORD
from webapp.accounts import people
from webapp.accounts.models import Role, User

ClientOf = Callable[[User | None], Client]
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_old_attempts() -> None:
    cache.clear()


def begin_log_in(person: User) -> Client:
    client = Client()
    client.post("/accounts/login/", {"login": person.email, "password": PASSWORD})
    return client


def confirmed(person: User) -> Client:
    """Logged in, and asked for the password once more, as every change of factors wants."""
    client = begin_log_in(person)
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    return client


def set_up_app(person: User) -> tuple[Client, str]:
    client = confirmed(person)
    page = client.get("/accounts/2fa/totp/activate/").content.decode()
    secret = re.search(r'class="totp-key">(\w+)<', page)
    assert secret is not None, page
    answer = client.post("/accounts/2fa/totp/activate/", {"code": code_of(secret[1])})
    assert answer["Location"] == "/accounts/2fa/recovery-codes/"
    return client, secret[1]


def is_in(client: Client) -> bool:
    return client.get("/profile/").status_code == 200


def test_app_is_asked_for_after_the_password(alice: User) -> None:
    _, secret = set_up_app(alice)
    client = begin_log_in(alice)
    assert not is_in(client)
    cache.clear()
    page = client.post("/accounts/2fa/authenticate/", {"code": "000000"}).content.decode()
    assert "not the right one" in page
    assert not is_in(client)
    client.post("/accounts/2fa/authenticate/", {"code": code_of(secret)})
    assert is_in(client)


def test_recovery_code_lets_in_once(alice: User) -> None:
    client, _ = set_up_app(alice)
    page = client.get("/accounts/2fa/recovery-codes/").content.decode()
    code = re.findall(r"<li><code>(\w+)</code>", page)[0]
    first = begin_log_in(alice)
    first.post("/accounts/2fa/authenticate/", {"code": code})
    assert is_in(first)
    second = begin_log_in(alice)
    second.post("/accounts/2fa/authenticate/", {"code": code})
    assert not is_in(second)


def test_password_link_does_not_get_past_the_app(alice: User, administrator: User) -> None:
    set_up_app(alice)
    link = people.make_password_link(person=alice, made_by=administrator)
    client = Client()
    path = re.sub(r"^https?://[^/]+", "", link)
    action = client.get(path, follow=True).redirect_chain[-1][0]
    client.post(action, {"password1": "a new long one", "password2": "a new long one"})
    assert not is_in(client)
    client.post("/accounts/login/", {"login": alice.email, "password": "a new long one"})
    assert not is_in(client)


def test_after_a_reset_the_password_is_enough(alice: User, administrator: User) -> None:
    set_up_app(alice)
    people.reset_factors(person=alice, reset_by=administrator)
    assert is_in(begin_log_in(alice))


def test_person_disabled_between_password_and_code_stays_out(
    alice: User, administrator: User
) -> None:
    _, secret = set_up_app(alice)
    client = begin_log_in(alice)
    people.disable_person(person=alice, disabled_by=administrator)
    client.post("/accounts/2fa/authenticate/", {"code": code_of(secret)})
    assert not is_in(client)


def test_a_service_account_with_an_app_stays_out(alice: User) -> None:
    _, secret = set_up_app(alice)
    client = begin_log_in(alice)
    User.objects.filter(pk=alice.pk).update(role=Role.SERVICE)
    client.post("/accounts/2fa/authenticate/", {"code": code_of(secret)})
    assert not is_in(client)


def test_removing_the_app_asks_and_then_does(alice: User) -> None:
    client, _ = set_up_app(alice)
    page = client.get("/accounts/2fa/totp/deactivate/").content.decode()
    assert "Remove the authenticator app?" in page
    client.post("/accounts/2fa/totp/deactivate/")
    assert not Authenticator.objects.exists()


def test_person_who_came_by_a_link_sets_up_an_app_like_others(
    alice: User, administrator: User
) -> None:
    link = people.make_password_link(person=alice, made_by=administrator)
    client = Client()
    action = client.get(re.sub(r"^https?://[^/]+", "", link), follow=True).redirect_chain[-1][0]
    client.post(action, {"password1": PASSWORD, "password2": PASSWORD})
    set_up_app(alice)
    assert Authenticator.objects.filter(user=alice, type=Authenticator.Type.TOTP).exists()


def test_changing_factors_wants_the_password_once_more(alice: User) -> None:
    answer = begin_log_in(alice).get("/accounts/2fa/webauthn/add/")
    assert answer["Location"].startswith("/accounts/reauthenticate/")


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("/accounts/2fa/", "Second factors and passkeys"),
        ("/accounts/2fa/webauthn/", "None is set up."),
        ("/accounts/2fa/webauthn/add/", "Add a passkey"),
        ("/accounts/2fa/recovery-codes/generate/", "Make new recovery codes?"),
        ("/accounts/password/change/", "Change password"),
    ],
)
def test_pages_are_in_our_words(alice: User, page: str, words: str) -> None:
    client = confirmed(alice)
    text = client.get(page).content.decode()
    assert words in text
    for foreign in ("Sign In", "sign in", "third-party", "Authenticator App"):
        assert foreign not in text


@pytest.mark.parametrize("page", ["/accounts/email/", "/accounts/3rdparty/", "/accounts/sessions/"])
def test_what_people_may_not_change_has_no_page(
    alice: User, client_of: ClientOf, page: str
) -> None:
    assert client_of(alice).get(page)["Location"] == "/profile/"
    assert (
        client_of(alice).post(page, {"email": "x@example.org", "action_add": ""})["Location"]
        == "/profile/"
    )
