"""Signing up by mail, where it is opened for named domains."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.core.cache import cache
from django.core.mail import EmailMessage
from django.test import Client
from pytest_django.fixtures import Settings

from webapp.accounts.models import User

ClientOf = Callable[[User | None], Client]
pytestmark = pytest.mark.django_db
PAGE = "/accounts/signup/"


@pytest.fixture(autouse=True)
def no_old_attempts() -> None:
    cache.clear()


@pytest.fixture
def opened(settings: Settings) -> None:
    update = {"sign_up_domains": "example.org", "email_url": "smtp://mail.example.org:25"}
    settings.SITE = settings.SITE.model_copy(update=update)


def test_it_is_closed_by_itself(client: Client) -> None:
    assert "made by an administrator" in client.get(PAGE).content.decode()
    client.post(PAGE, {"email": "dan@example.org"})
    assert not User.objects.exists()
    assert PAGE not in client.get("/accounts/login/").content.decode()


def test_without_mail_an_open_domain_lets_nobody_sign_up(
    client: Client, settings: Settings
) -> None:
    settings.SITE = settings.SITE.model_copy(update={"sign_up_domains": "example.org"})
    client.post(PAGE, {"email": "dan@example.org"})
    assert not User.objects.exists()


def test_the_link_in_the_mail_proves_the_address(
    client: Client, opened: None, mailoutbox: list[EmailMessage]
) -> None:
    assert PAGE in client.get("/accounts/login/").content.decode()
    client.post(PAGE, {"email": "Dan@Example.org", "name": "Dan"})
    dan = User.objects.get()
    assert (dan.name, dan.role, dan.has_usable_password()) == ("Dan", "staff", False)
    path = re.search(r"/accounts/password/reset/key/\S+", str(mailoutbox[0].body))
    assert path is not None
    action = client.get(path[0], follow=True).redirect_chain[-1][0]
    client.post(action, {"password1": "dan and his words", "password2": "dan and his words"})
    client.post("/accounts/login/", {"login": "dan@example.org", "password": "dan and his words"})
    assert client.session["_auth_user_id"] == str(dan.pk)


def test_known_new_and_unwelcome_addresses_get_the_same_answer(
    client: Client, opened: None, alice: User, mailoutbox: list[EmailMessage]
) -> None:
    addresses = ("alice@example.org", "new@example.org", "eve@elsewhere.org")
    answers = [client.post(PAGE, {"email": address}) for address in addresses]
    assert {(answer.status_code, answer["Location"]) for answer in answers} == {
        (302, "/accounts/password/reset/done/")
    }
    assert [mail.to for mail in mailoutbox] == [["alice@example.org"], ["new@example.org"]]
    assert not User.objects.filter(email="eve@elsewhere.org").exists()


def test_what_is_no_address_is_said_beside_the_field(client: Client, opened: None) -> None:
    response = client.post(PAGE, {"email": "nobody"})
    assert response.status_code == 400
    assert "field-error" in response.content.decode()


def test_asking_again_and_again_is_throttled(client: Client, opened: None) -> None:
    answers = [client.post(PAGE, {"email": f"person{number}@example.org"}) for number in range(21)]
    assert [answer.status_code for answer in answers] == [302] * 20 + [429]
    assert "This was too often" in answers[-1].content.decode()


def test_who_is_logged_in_needs_no_account(opened: None, alice: User, client_of: ClientOf) -> None:
    assert client_of(alice).get(PAGE)["Location"] == "/"
