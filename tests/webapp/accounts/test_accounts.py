"""People: logging in and out, throttles, invitations, what administrators can change."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from django.core.cache import cache
from django.core.mail import EmailMessage
from django.core.management import CommandError, call_command
from django.test import Client

from webapp.accounts.models import Role, User

pytestmark = pytest.mark.django_db
PASSWORD = "a password of hers"


@pytest.fixture(autouse=True)
def no_old_attempts() -> None:
    cache.clear()


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice@example.org", PASSWORD, name="Alice")


def log_in(client: Client, password: str = PASSWORD, email: str = "alice@example.org") -> int:
    response = client.post("/accounts/login/", {"login": email, "password": password})
    return response.status_code


def test_right_password_logs_in_and_log_out_ends_the_session(client: Client, alice: User) -> None:
    assert log_in(client) == 302
    assert client.session["_auth_user_id"] == str(alice.pk)
    client.post("/accounts/logout/")
    assert "_auth_user_id" not in client.session


def test_guessing_is_throttled_even_with_the_right_password_in_the_end(
    client: Client, alice: User
) -> None:
    for _ in range(5):
        assert log_in(client, "wrong") == 200
    assert log_in(client) == 200
    assert "_auth_user_id" not in client.session


def test_throttle_of_one_account_does_not_lock_others_out(client: Client, alice: User) -> None:
    User.objects.create_user("bob@example.org", PASSWORD)
    for _ in range(5):
        log_in(client, "wrong")
    assert log_in(client, email="bob@example.org") == 302


def test_guessing_many_accounts_from_one_address_is_throttled(client: Client) -> None:
    for number in range(10):
        log_in(client, "wrong", f"person{number}@example.org")
    response = client.post("/accounts/login/", {"login": "a@example.org", "password": "wrong"})
    assert "Too many attempts failed" in response.content.decode()


def test_disabled_person_cannot_log_in(client: Client, alice: User) -> None:
    alice.is_active = False
    alice.save()
    log_in(client)
    assert "_auth_user_id" not in client.session


def test_nobody_signs_up_by_themselves(client: Client) -> None:
    client.post(
        "/accounts/signup/",
        {"email": "eve@example.org", "password1": PASSWORD, "password2": PASSWORD},
    )
    assert not User.objects.exists()


def test_password_is_changed_by_its_owner_only_with_the_old_one(
    client: Client, alice: User
) -> None:
    log_in(client)
    new = {"password1": "another long one", "password2": "another long one"}
    client.post("/accounts/password/change/", {"oldpassword": "wrong", **new})
    alice.refresh_from_db()
    assert alice.check_password(PASSWORD)
    client.post("/accounts/password/change/", {"oldpassword": PASSWORD, **new})
    alice.refresh_from_db()
    assert alice.check_password("another long one")


def test_reset_mail_goes_to_people_who_exist_and_says_nothing_to_others(
    client: Client, alice: User, mailoutbox: list[EmailMessage]
) -> None:
    known = client.post("/accounts/password/reset/", {"email": "alice@example.org"})
    unknown = client.post("/accounts/password/reset/", {"email": "nobody@example.org"})
    assert known.status_code == unknown.status_code == 302
    assert known["Location"] == unknown["Location"]
    assert [mail.to for mail in mailoutbox] == [["alice@example.org"]]
    assert "/accounts/password/reset/key/" in str(mailoutbox[0].body)


def invite(*arguments: str) -> str:
    output = StringIO()
    call_command("invite", *arguments, stdout=output, stderr=StringIO())
    return output.getvalue().strip()


def test_invitation_link_sets_a_password_once(client: Client) -> None:
    link = invite("Carol@example.org", "--name", "Carol")
    path = re.sub(r"^https?://[^/]+", "", link)
    form_page = client.get(path, follow=True)
    action = form_page.redirect_chain[-1][0]
    new = {"password1": "carol chose this", "password2": "carol chose this"}
    client.post(action, new)
    carol = User.objects.get(email="carol@example.org")
    assert carol.check_password("carol chose this")
    assert carol.role == Role.STAFF
    again = Client().get(path, follow=True)
    assert "password1" not in again.content.decode()
    assert log_in(Client(), "carol chose this", "Carol@Example.org") == 302


def test_inviting_an_administrator_raises_who_is_there_already(alice: User) -> None:
    invite("alice@example.org", "--administrator")
    alice.refresh_from_db()
    assert alice.is_administrator
    assert alice.is_staff
    assert alice.check_password(PASSWORD)


def test_invitation_refuses_what_is_no_address() -> None:
    with pytest.raises(CommandError, match="not an e-mail address"):
        invite("nobody")


@pytest.mark.parametrize("page", ["{}/change/", "{}/delete/", "{}/password/", "add/"])
def test_djangos_admin_changes_nobody(client: Client, alice: User, page: str) -> None:
    """What changes who gets in has one road, which audits it."""
    client.force_login(User.objects.create_superuser("admin@example.org", PASSWORD))
    data = {"email": "eve@example.org", "name": "Eve", "role": "administrator", "is_active": ""}
    new = {"password1": "another long one", "password2": "another long one"}
    address = f"/admin/accounts/user/{page.format(alice.pk)}"
    assert client.post(address, {**data, **new}).status_code in {302, 403, 404}
    alice.refresh_from_db()
    assert (alice.email, alice.role, alice.is_active) == ("alice@example.org", "staff", True)
    assert alice.check_password(PASSWORD)
    assert User.objects.count() == 2


def test_djangos_admin_shows_people_but_no_key_to_an_account(client: Client, alice: User) -> None:
    client.force_login(User.objects.create_superuser("admin@example.org", PASSWORD))
    page = client.get(f"/admin/accounts/user/{alice.pk}/change/").content.decode()
    assert "alice@example.org" in page
    assert alice.password not in page
    for keys in ("mfa/authenticator", "usersessions/usersession", "account/emailaddress"):
        assert client.get(f"/admin/{keys}/").status_code == 404


def test_staff_do_not_enter_the_admin(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert client.get("/admin/").status_code == 302
