"""REST v1, for administrators: people, teams and service accounts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from webapp.accounts.models import ApiToken, Role, Scope, Team, User

pytestmark = pytest.mark.django_db

ClientOf = Callable[[User | None], Client]
USERS = "/api/v1/users"
TEAMS = "/api/v1/teams"


def send(client: Client, method: str, path: str, body: Any = None, **arguments: Any) -> Any:
    call = getattr(client, method)
    return call(path, {} if body is None else body, content_type="application/json", **arguments)


def test_somebody_is_invited_and_chooses_a_password_by_a_link(
    client_of: ClientOf, administrator: User
) -> None:
    client = client_of(administrator)
    made = send(client, "post", USERS, {"email": "dora@example.org", "name": "Dora"})
    assert made.status_code == 201, made.content
    dora = User.objects.get(email="dora@example.org")
    assert made["Location"].endswith(f"{USERS}/{dora.pk}")
    assert (made.json()["role"], made.json()["is_active"]) == ("staff", True)
    link = send(client, "post", f"{USERS}/{dora.pk}/password-link").json()["url"]
    page = client_of(None).get(link[link.index("/accounts") :], follow=True)
    assert page.status_code == 200
    again = send(client, "post", USERS, {"email": "DORA@example.org"})
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


def test_a_service_account_is_made_by_its_name(client_of: ClientOf, administrator: User) -> None:
    client = client_of(administrator)
    made = send(client, "post", USERS, {"name": "Exchange", "role": "service"})
    assert (made.status_code, made.json()["role"]) == (201, "service")
    path = f"{USERS}/{made.json()['id']}"
    assert send(client, "post", f"{path}/password-link").status_code == 409
    both = {"name": "Another", "role": "service", "email": "a@example.org"}
    assert send(client, "post", USERS, both).status_code == 400


@pytest.mark.parametrize(
    "asked", [{}, {"email": "nobody"}, {"email": "a@example.org", "role": "king"}, {"email": "\0"}]
)
def test_who_cannot_be_is_not_invited(
    client_of: ClientOf, administrator: User, asked: dict[str, Any]
) -> None:
    assert send(client_of(administrator), "post", USERS, asked).status_code == 400
    assert User.objects.count() == 1


def test_roles_change_and_people_are_disabled(
    client_of: ClientOf, administrator: User, bob: User
) -> None:
    client, path = client_of(administrator), f"{USERS}/{bob.pk}"
    tag = {"If-Match": client.get(path)["ETag"]}
    assert send(client, "patch", path, {"role": "administrator"}, headers=tag).status_code == 200
    assert send(client, "patch", path, {"is_active": False}, headers=tag).status_code == 412
    assert send(client, "patch", path, {"is_active": False}).json()["is_active"] is False
    bob.refresh_from_db()
    assert (bob.role, bob.is_active) == (Role.ADMINISTRATOR, False)
    assert send(client, "patch", path, {"is_active": True}).json()["is_active"] is True


def test_the_last_administrator_stays_one(client_of: ClientOf, administrator: User) -> None:
    client, path = client_of(administrator), f"{USERS}/{administrator.pk}"
    for change in ({"is_active": False}, {"role": "staff"}):
        assert send(client, "patch", path, change).status_code == 409
    administrator.refresh_from_db()
    assert administrator.is_active
    assert administrator.is_administrator


def test_sessions_and_factors_end(client_of: ClientOf, administrator: User, bob: User) -> None:
    theirs, client = client_of(bob), client_of(administrator)
    assert send(client, "post", f"{USERS}/{bob.pk}/end-sessions").status_code == 204
    assert theirs.get("/api/v1/recordings").status_code == 401
    assert send(client, "post", f"{USERS}/{bob.pk}/reset-factors").status_code == 204


def test_lists_are_filtered_in_the_same_queries_for_any_length(
    client_of: ClientOf,
    administrator: User,
    alice: User,
    bob: User,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    Team.objects.create(name="Sales").members.add(alice, bob)
    client = client_of(administrator)
    with django_assert_num_queries(4):  # the session, the person, users, teams
        items = client.get(USERS).json()["items"]
    assert {item["email"] for item in items} == {user.email for user in User.objects.all()}
    only = client.get(USERS, {"role": "administrator"}).json()["items"]
    assert [item["id"] for item in only] == [administrator.pk]
    assert client.get(USERS, {"q": "ali"}).json()["items"][0]["teams"][0]["name"] == "Sales"


def test_teams_are_made_and_have_members(
    client_of: ClientOf, administrator: User, alice: User
) -> None:
    client = client_of(administrator)
    made = send(client, "post", TEAMS, {"name": "Sales"})
    assert made.status_code == 201, made.content
    path = f"{TEAMS}/{made.json()['id']}"
    assert send(client, "post", TEAMS, {"name": "sales"}).status_code == 409
    joined = send(client, "put", f"{path}/members/{alice.pk}")
    assert joined.json()["members"] == [{"id": alice.pk, "name": "Alice"}]
    tag = {"If-Match": joined["ETag"]}
    assert send(client, "put", path, {"name": "Sellers"}, headers=tag).json()["name"] == "Sellers"
    assert send(client, "put", path, {"name": "Others"}, headers=tag).status_code == 412
    assert client.get(TEAMS).json()["items"][0]["name"] == "Sellers"
    assert client.delete(f"{path}/members/{alice.pk}").status_code == 204
    assert client.get(path).json()["members"] == []
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404


def test_only_administrators_with_the_scope(
    client_of: ClientOf, administrator: User, alice: User
) -> None:
    for path in (USERS, TEAMS, f"{USERS}/{alice.pk}", "/api/v1/retention"):
        assert client_of(alice).get(path).status_code == 404
        assert client_of(None).get(path).status_code == 401
    assert send(client_of(alice), "post", USERS, {"email": "e@example.org"}).status_code == 404
    for user, scope, status in (
        (administrator, Scope.ADMINISTRATION, 200),
        (administrator, Scope.RECORDINGS_READ, 403),
        (alice, Scope.ADMINISTRATION, 404),
    ):
        _, secret = ApiToken.issue(user=user, name="tool", scopes=[scope])
        response = client_of(None).get(USERS, headers={"Authorization": f"Bearer {secret}"})
        assert response.status_code == status
