"""The administration's page of people: who may, what it says, and links to copy."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from tests.fakes.people import PASSWORD, make_person
from webapp.accounts.models import AuditEntry, Role, Team, User

ClientOf = Callable[[User | None], Client]

ACTS = ("link", "details", "disable", "enable", "role", "factors", "sessions")


def address(person: User, act: str = "") -> str:
    return f"/administration/people/{person.pk}/{act}{'/' if act else ''}"


# Who may ------------------------------------------------------------------------------------------


def test_pages_are_the_administrators(alice: User, bob: User, client_of: ClientOf) -> None:
    for page in ("/administration/people/", address(bob)):
        assert client_of(alice).get(page).status_code == 404
        assert client_of(None).get(page).status_code == 302


@pytest.mark.parametrize("act", ACTS)
def test_acts_are_the_administrators_and_posts(
    administrator: User, alice: User, bob: User, client_of: ClientOf, act: str
) -> None:
    data = {"role": Role.ADMINISTRATOR, "name": "Eve", "email": "eve@example.org"}
    assert client_of(alice).post(address(bob, act), data).status_code == 404
    assert client_of(None).post(address(bob, act), data).status_code == 302
    assert client_of(administrator).get(address(bob, act)).status_code == 405
    bob.refresh_from_db()
    assert (bob.is_active, bob.role, bob.name) == (True, Role.STAFF, "Bob")


def test_strangers_invite_nobody(alice: User, client_of: ClientOf) -> None:
    data = {"email": "eve@example.org", "role": "administrator"}
    assert client_of(alice).post("/administration/people/invite/", data).status_code == 404
    assert not User.objects.filter(email="eve@example.org").exists()


def test_a_service_account_has_no_page_here(administrator: User, client_of: ClientOf) -> None:
    tool = User.objects.create_user("tool@example.org", None, name="Robot", role=Role.SERVICE)
    assert client_of(administrator).get(address(tool)).status_code == 404
    assert "Robot" not in client_of(administrator).get("/administration/people/").content.decode()


# The list -----------------------------------------------------------------------------------------


def test_list_finds_people_by_name_and_address(
    administrator: User, alice: User, bob: User, client_of: ClientOf
) -> None:
    page = client_of(administrator).get("/administration/people/?q=bob@").content.decode()
    assert address(bob) in page
    assert address(alice) not in page


def test_list_asks_as_often_for_many_as_for_few(
    administrator: User,
    alice: User,
    client_of: ClientOf,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    client = client_of(administrator)
    for number in range(12):
        Team.objects.create(name=f"Team {number}").members.add(make_person(f"P{number}"))
    with django_assert_num_queries(5):
        client.get("/administration/people/")


# Inviting, and the link ---------------------------------------------------------------------------


def test_invitation_leads_to_a_link_by_which_the_person_comes_in(
    administrator: User, client_of: ClientOf
) -> None:
    client = client_of(administrator)
    data = {"email": "dan@example.org", "name": "Dan <D>", "role": "staff"}
    invited = client.post("/administration/people/invite/", data)
    dan = User.objects.get(email="dan@example.org")
    assert "no-store" in invited["Cache-Control"]
    page = invited.content.decode()
    assert 'class="card link-made" role="status" tabindex="-1" autofocus' in page
    assert "Here since" not in page
    assert "Dan &lt;D&gt;" in page
    link = re.search(r"/accounts/password/reset/key/[^\"]+", page)
    assert link is not None
    assert "/password/reset/key/" not in client.get(address(dan)).content.decode()
    new = {"password1": "dan and his words", "password2": "dan and his words"}
    form_page = Client().get(link[0], follow=True)
    visitor = Client()
    action = visitor.get(link[0], follow=True).redirect_chain[-1][0]
    assert form_page.status_code == 200
    visitor.post(action, new)
    dan.refresh_from_db()
    assert dan.check_password("dan and his words")
    assert AuditEntry.objects.filter(actor=administrator, detail={"by": "link"}).count() == 1


@pytest.mark.parametrize(
    ("email", "words"),
    [("", "required"), ("nobody", "valid"), ("alice@example.org", "account already")],
)
def test_wrong_invitation_says_why_and_keeps_what_was_typed(
    administrator: User, alice: User, client_of: ClientOf, email: str, words: str
) -> None:
    data = {"email": email, "name": "Somebody", "role": "staff"}
    response = client_of(administrator).post("/administration/people/invite/", data)
    assert response.status_code in {400, 409}
    page = response.content.decode()
    assert words in page
    assert 'value="Somebody"' in page


# One person ---------------------------------------------------------------------------------------


def test_disabling_and_enabling(administrator: User, alice: User, client_of: ClientOf) -> None:
    hers, client = client_of(alice), client_of(administrator)
    client.post(address(alice, "disable"))
    assert hers.get("/profile/").status_code == 302
    page = client.get(address(alice)).content.decode()
    assert "Disabled" in page
    assert address(alice, "link") not in page
    refused = client.post(address(alice, "link"), follow=True).content.decode()
    assert "cannot log in" in refused
    client.post(address(alice, "enable"))
    alice.refresh_from_db()
    assert alice.is_active


def test_name_and_address_are_mended_and_the_new_address_logs_in(
    administrator: User, alice: User, client_of: ClientOf
) -> None:
    client = client_of(administrator)
    client.post(address(alice, "details"), {"name": "Alice B", "email": "Alice.B@example.org"})
    alice.refresh_from_db()
    assert (alice.name, alice.email) == ("Alice B", "alice.b@example.org")
    hers = Client()
    hers.post("/accounts/login/", {"login": "alice.b@example.org", "password": PASSWORD})
    assert hers.get("/profile/").status_code == 200
    entry = AuditEntry.objects.get(act="address_changed")
    assert entry.detail == {"from": "alice@example.org", "to": "alice.b@example.org"}


@pytest.mark.parametrize("email", ["bob@example.org", "BOB@example.org", "nobody", ""])
def test_wrong_address_is_said_beside_the_field(
    administrator: User, alice: User, bob: User, client_of: ClientOf, email: str
) -> None:
    data = {"name": "Alice", "email": email}
    response = client_of(administrator).post(address(alice, "details"), data)
    assert response.status_code == 400
    assert "field-error" in response.content.decode()
    alice.refresh_from_db()
    assert alice.email == "alice@example.org"


def test_role_is_changed_and_nonsense_is_refused(
    administrator: User, alice: User, client_of: ClientOf
) -> None:
    client = client_of(administrator)
    client.post(address(alice, "role"), {"role": "administrator"})
    alice.refresh_from_db()
    assert alice.is_administrator
    page = client.post(address(alice, "role"), {"role": "service"}, follow=True).content.decode()
    assert "Nothing was changed." in page
    alice.refresh_from_db()
    assert alice.is_administrator


def test_administrator_cannot_lock_themselves_out(administrator: User, client_of: ClientOf) -> None:
    client = client_of(administrator)
    page = client.get(address(administrator)).content.decode()
    assert address(administrator, "disable") not in page
    assert address(administrator, "role") not in page
    client.post(address(administrator, "disable"))
    client.post(address(administrator, "role"), {"role": "staff"})
    administrator.refresh_from_db()
    assert (administrator.is_active, administrator.role) == (True, Role.ADMINISTRATOR)


def test_sessions_are_shown_in_words_and_ended(
    administrator: User, alice: User, client_of: ClientOf
) -> None:
    hers = Client(
        headers={"user-agent": "Mozilla/5.0 (Windows NT 10.0) Gecko/20100101 Firefox/140.0"}
    )
    hers.post("/accounts/login/", {"login": alice.email, "password": PASSWORD})
    client = client_of(administrator)
    assert "Firefox on Windows" in client.get(address(alice)).content.decode()
    client.post(address(alice, "sessions"))
    assert hers.get("/profile/").status_code == 302
    assert "Firefox on Windows" not in client.get(address(alice)).content.decode()


def test_a_link_for_whoever_forgot_the_password_is_shown_once(
    administrator: User, alice: User, client_of: ClientOf
) -> None:
    client = client_of(administrator)
    made = client.post(address(alice, "link"))
    assert "no-store" in made["Cache-Control"]
    assert "/password/reset/key/" in made.content.decode()
    assert "/password/reset/key/" not in client.get(address(alice)).content.decode()


def test_a_person_joins_a_team_on_their_own_page(
    administrator: User, alice: User, client_of: ClientOf
) -> None:
    client, board = client_of(administrator), Team.objects.create(name="Board")
    page = client.post(address(alice, "teams"), {"team": board.pk}, follow=True).content.decode()
    assert "is in the team Board" in page
    assert "Another team" not in page
    for team in ("", "x", board.pk + 1):
        assert client.post(address(alice, "teams"), {"team": team}).status_code == 404
    assert list(alice.teams.all()) == [board]
    assert client_of(alice).post(address(alice, "teams"), {"team": board.pk}).status_code == 404


def test_reset_factors_of_somebody_without_any_changes_nothing(
    administrator: User, alice: User, client_of: ClientOf
) -> None:
    assert client_of(administrator).post(address(alice, "factors")).status_code == 302
    assert not AuditEntry.objects.filter(act="factors_reset").exists()
