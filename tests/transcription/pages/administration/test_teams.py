"""The administration's page of teams."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.fakes.people import make_person
from transcription.models import RetentionPolicy
from transcription.services.retention import change_policy
from transcription.services.retention_rules import Rules
from webapp.accounts.models import Team, User

ClientOf = Callable[[User | None], Client]


@pytest.fixture
def sales(db: None) -> Team:
    return Team.objects.create(name="Sales")


def address(team: Team, act: str = "") -> str:
    return f"/administration/teams/{team.pk}/{act}"


def test_pages_and_acts_are_the_administrators(
    alice: User, sales: Team, client_of: ClientOf
) -> None:
    for page in ("/administration/teams/", address(sales)):
        assert client_of(alice).get(page).status_code == 404
        assert client_of(None).get(page).status_code == 302
    for act in ("rename/", "delete/", "members/", f"members/{alice.pk}/remove/"):
        data = {"name": "Mine", "email": alice.email}
        assert client_of(alice).post(address(sales, act), data).status_code == 404
        assert client_of(None).post(address(sales, act), data).status_code == 302
    assert client_of(alice).post("/administration/teams/new/", {"name": "Mine"}).status_code == 404
    assert [(team.name, team.members.count()) for team in Team.objects.all()] == [("Sales", 0)]


def test_team_is_made_filled_renamed_emptied_and_deleted(
    administrator: User, alice: User, client_of: ClientOf
) -> None:
    client = client_of(administrator)
    made = client.post("/administration/teams/new/", {"name": "Board"})
    team = Team.objects.get()
    assert made["Location"] == address(team)
    client.post(address(team, "members/"), {"email": "ALICE@example.org"})
    assert list(team.members.all()) == [alice]
    client.post(address(team, "rename/"), {"name": "The board"})
    assert "The board" in client.get("/administration/teams/").content.decode()
    back = f"/administration/people/{alice.pk}/"
    removed = client.post(address(team, f"members/{alice.pk}/remove/"), {"next": back})
    assert removed["Location"] == back
    assert not team.members.exists()
    client.post(address(team, "delete/"))
    assert not Team.objects.exists()


def test_wrong_name_is_said_beside_the_field(
    administrator: User, sales: Team, client_of: ClientOf
) -> None:
    client = client_of(administrator)
    for name in ("", "sales", "x" * 101):
        response = client.post("/administration/teams/new/", {"name": name})
        assert response.status_code == 400
        assert "field-error" in response.content.decode()
    other = Team.objects.create(name="Board")
    response = client.post(address(other, "rename/"), {"name": "Sales"})
    assert response.status_code == 400
    assert "<h1>Board</h1>" in response.content.decode()


def test_unknown_address_joins_nothing(
    administrator: User, sales: Team, client_of: ClientOf
) -> None:
    data = {"email": "nobody@example.org"}
    answer = client_of(administrator).post(address(sales, "members/"), data)
    assert answer.status_code == 400
    page = answer.content.decode()
    assert '<p class="field-error">Nobody here has the address “nobody@example.org”.</p>' in page
    assert 'value="nobody@example.org"' in page
    assert not sales.members.exists()


def test_team_with_retention_rules_of_its_own_is_not_deleted(
    administrator: User, sales: Team, client_of: ClientOf
) -> None:
    """Its recordings would end by the organisation's rules, which nobody has looked at."""
    client = client_of(administrator)
    change_policy(team=sales, rules=Rules(transcript_days=900), changed_by=administrator)
    page = client.post(address(sales, "delete/"), follow=True).content.decode()
    assert "has retention rules of its own" in page
    RetentionPolicy.objects.update(takes_effect_at=timezone.now())
    client.post(address(sales, "delete/"))
    assert Team.objects.filter(pk=sales.pk).exists()
    change_policy(team=sales, rules=Rules(), changed_by=administrator)
    RetentionPolicy.objects.update(takes_effect_at=timezone.now())
    client.post(address(sales, "delete/"))
    assert not Team.objects.filter(pk=sales.pk).exists()


def test_the_way_back_leads_to_no_other_site(
    administrator: User, alice: User, sales: Team, client_of: ClientOf
) -> None:
    answer = client_of(administrator).post(
        address(sales, f"members/{alice.pk}/remove/"), {"next": "https://evil.example/"}
    )
    assert answer["Location"] == address(sales)


def test_lists_ask_as_often_for_many_as_for_few(
    administrator: User,
    sales: Team,
    client_of: ClientOf,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    client = client_of(administrator)
    for number in range(10):
        sales.members.add(make_person(f"P{number}"))
        Team.objects.create(name=f"Team {number}")
    with django_assert_num_queries(3):
        client.get("/administration/teams/")
    with django_assert_num_queries(5):
        client.get(address(sales))
