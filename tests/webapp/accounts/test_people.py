"""What administrators do to people, and what that ends."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.db import connection
from django.test import Client

from tests.fakes.people import PASSWORD, make_person
from webapp.accounts import people
from webapp.accounts.errors import InvalidPersonError, PeopleError
from webapp.accounts.models import Act, AuditEntry, Role, User
from webapp.accounts.signals import rights_changed

ClientOf = Callable[[User | None], Client]
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_old_attempts() -> None:
    cache.clear()


@pytest.fixture
def told() -> Any:
    """Whose rights were said to have changed."""
    heard: list[int] = []

    def hear(user_id: int, **_: Any) -> None:
        heard.append(user_id)

    rights_changed.connect(hear)
    yield heard
    rights_changed.disconnect(hear)


def acts() -> list[tuple[str, str, str]]:
    """Of the administrator."""
    entries = AuditEntry.objects.filter(actor__email="admin@example.org").order_by("id")
    return [(entry.actor_name, entry.act, entry.subject_name) for entry in entries]


def log_in(person: User) -> Client:
    client = Client()
    client.post("/accounts/login/", {"login": person.email, "password": PASSWORD})
    assert is_in(client)
    return client


def is_in(client: Client) -> bool:
    return client.get("/profile/").status_code == 200


# Inviting -----------------------------------------------------------------------------------------


def test_invited_person_has_no_password_and_is_told_of(administrator: User) -> None:
    person = people.invite_person(email=" Dan@Example.org ", name="Dan", invited_by=administrator)
    assert (person.email, person.role, person.has_usable_password()) == (
        "dan@example.org",
        Role.STAFF,
        False,
    )
    assert acts() == [("admin@example.org", Act.INVITED, "Dan")]


def test_invited_administrator_has_djangos_rights_too(administrator: User) -> None:
    person = people.invite_person(
        email="dan@example.org", role=Role.ADMINISTRATOR, invited_by=administrator
    )
    assert person.is_staff
    assert person.is_superuser


@pytest.mark.parametrize("email", ["", "nobody", "a@b@c.org"])
def test_invitation_refuses_what_is_no_address(administrator: User, email: str) -> None:
    with pytest.raises(InvalidPersonError, match="not an e-mail address"):
        people.invite_person(email=email, invited_by=administrator)


def test_known_address_is_not_invited_again_whatever_its_case(
    administrator: User, alice: User
) -> None:
    with pytest.raises(PeopleError, match="already"):
        people.invite_person(email="ALICE@example.org", invited_by=administrator)


def test_nobody_is_invited_as_a_service_account(administrator: User) -> None:
    with pytest.raises(InvalidPersonError, match="staff or an administrator"):
        people.invite_person(email="x@example.org", role=Role.SERVICE, invited_by=administrator)


# Disabling ----------------------------------------------------------------------------------------


def test_disabled_person_is_out_at_once_and_stays_out(
    administrator: User,
    alice: User,
    told: list[int],
    django_capture_on_commit_callbacks: Any,
) -> None:
    client = log_in(alice)
    with django_capture_on_commit_callbacks(execute=True):
        people.disable_person(person=alice, disabled_by=administrator)
    assert not is_in(client)
    assert alice.pk in told
    assert not UserSession.objects.filter(user=alice).exists()
    answer = Client().post("/accounts/login/", {"login": alice.email, "password": PASSWORD})
    assert answer["Location"] == "/accounts/inactive/"
    people.enable_person(person=alice, enabled_by=administrator)
    assert not is_in(client), "the old session must not come back to life"
    assert is_in(log_in(alice))
    assert acts()[-2:] == [
        ("admin@example.org", Act.DISABLED, "Alice"),
        ("admin@example.org", Act.ENABLED, "Alice"),
    ]


def test_disabling_twice_is_one_act(administrator: User, alice: User) -> None:
    people.disable_person(person=alice, disabled_by=administrator)
    people.disable_person(person=alice, disabled_by=administrator)
    assert AuditEntry.objects.filter(act=Act.DISABLED).count() == 1


def test_nobody_disables_themselves(administrator: User, alice: User) -> None:
    people.change_role(person=alice, role=Role.ADMINISTRATOR, changed_by=administrator)
    with pytest.raises(PeopleError, match="yourself"):
        people.disable_person(person=administrator, disabled_by=administrator)


def test_last_administrator_is_neither_disabled_nor_demoted(
    administrator: User, alice: User
) -> None:
    with pytest.raises(PeopleError, match="last administrator"):
        people.disable_person(person=administrator, disabled_by=None)
    with pytest.raises(PeopleError, match="last administrator"):
        people.change_role(person=administrator, role=Role.STAFF, changed_by=None)
    administrator.refresh_from_db()
    assert administrator.is_active
    assert administrator.is_administrator


def test_a_disabled_administrator_does_not_count_as_another(
    administrator: User, alice: User
) -> None:
    people.change_role(person=alice, role=Role.ADMINISTRATOR, changed_by=administrator)
    people.disable_person(person=alice, disabled_by=administrator)
    with pytest.raises(PeopleError, match="last administrator"):
        people.disable_person(person=administrator, disabled_by=None)


@pytest.mark.django_db(transaction=True)
def test_two_administrators_who_disable_each_other_at_once_leave_one(
    administrator: User, alice: User
) -> None:
    people.change_role(person=alice, role=Role.ADMINISTRATOR, changed_by=administrator)
    together = Barrier(2, timeout=30)

    def disable(person: User, by: User) -> None:
        together.wait()
        try:
            with suppress(PeopleError):
                people.disable_person(person=person, disabled_by=by)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        acts = [threads.submit(disable, administrator, alice)]
        acts.append(threads.submit(disable, alice, administrator))
        for act in acts:
            act.result(timeout=60)
    assert User.objects.filter(role=Role.ADMINISTRATOR, is_active=True).count() == 1


# Roles --------------------------------------------------------------------------------------------


def test_role_changes_at_the_next_request_and_sockets_are_told(
    administrator: User,
    alice: User,
    client_of: ClientOf,
    told: list[int],
    django_capture_on_commit_callbacks: Any,
) -> None:
    client = client_of(alice)
    assert client.get("/glossary/").status_code == 404
    with django_capture_on_commit_callbacks(execute=True):
        people.change_role(person=alice, role=Role.ADMINISTRATOR, changed_by=administrator)
    assert client.get("/glossary/").status_code == 200
    assert alice.pk in told
    people.change_role(person=alice, role=Role.STAFF, changed_by=administrator)
    assert client.get("/glossary/").status_code == 404
    alice.refresh_from_db()
    assert not alice.is_superuser
    entry = AuditEntry.objects.filter(act=Act.ROLE_CHANGED).latest("id")
    assert entry.detail == {"from": "administrator", "to": "staff"}


def test_nobody_changes_their_own_role(administrator: User, alice: User) -> None:
    people.change_role(person=alice, role=Role.ADMINISTRATOR, changed_by=administrator)
    with pytest.raises(PeopleError, match="own role"):
        people.change_role(person=administrator, role=Role.STAFF, changed_by=administrator)


def test_tools_do_not_become_people_nor_people_tools(administrator: User, alice: User) -> None:
    tool = User.objects.create_user("tool@example.org", None, role=Role.SERVICE)
    with pytest.raises(PeopleError, match="tool"):
        people.change_role(person=tool, role=Role.STAFF, changed_by=administrator)
    with pytest.raises(InvalidPersonError):
        people.change_role(person=alice, role=Role.SERVICE, changed_by=administrator)


# Sessions and factors -----------------------------------------------------------------------------


def test_ended_sessions_are_over_also_those_that_no_list_knows(
    administrator: User, alice: User, client_of: ClientOf
) -> None:
    listed, unlisted = log_in(alice), client_of(alice)
    people.end_sessions(person=alice, ended_by=administrator)
    assert not is_in(listed)
    assert not is_in(unlisted)
    assert is_in(log_in(alice))
    assert ("admin@example.org", Act.SESSIONS_ENDED, "Alice") in acts()


def test_one_session_is_ended_and_the_other_goes_on(
    alice: User, told: list[int], django_capture_on_commit_callbacks: Any
) -> None:
    lost, kept = log_in(alice), log_in(alice)
    session = UserSession.objects.get(session_key=lost.session.session_key)
    with django_capture_on_commit_callbacks(execute=True):
        people.end_session(session=session, ended_by=alice)
    assert not is_in(lost)
    assert is_in(kept)
    assert told == [alice.pk]
    assert not Session.objects.filter(session_key=session.session_key).exists()


def test_changed_password_ends_the_other_sessions(alice: User) -> None:
    here, elsewhere = log_in(alice), log_in(alice)
    new = "another long passphrase"
    here.post(
        "/accounts/password/change/",
        {"oldpassword": PASSWORD, "password1": new, "password2": new},
    )
    assert is_in(here)
    assert not is_in(elsewhere)


def test_reset_factors_are_gone_and_only_of_this_person(
    administrator: User, alice: User, bob: User
) -> None:
    for person in (alice, bob):
        Authenticator.objects.create(user=person, type=Authenticator.Type.TOTP, data={})
    assert people.reset_factors(person=alice, reset_by=administrator) == 1
    assert people.reset_factors(person=alice, reset_by=administrator) == 0
    assert [row.user_id for row in Authenticator.objects.all()] == [bob.pk]
    assert AuditEntry.objects.filter(act=Act.FACTORS_RESET).count() == 1


# Service accounts ---------------------------------------------------------------------------------


def test_service_account_cannot_log_in_even_with_a_password(client_of: ClientOf) -> None:
    tool = make_person("Tool")
    User.objects.filter(pk=tool.pk).update(role=Role.SERVICE)
    client = Client()
    client.post("/accounts/login/", {"login": tool.email, "password": PASSWORD})
    assert not is_in(client)
    assert not Client().login(email=tool.email, password=PASSWORD)
    assert not is_in(client_of(tool)), "a session made by other means stands for nobody"


def test_djangos_own_log_in_page_is_no_second_door(administrator: User) -> None:
    client = Client()
    answer = client.post("/admin/login/", {"username": administrator.email, "password": PASSWORD})
    assert answer["Location"].startswith("/accounts/login/")
    assert not is_in(client)
