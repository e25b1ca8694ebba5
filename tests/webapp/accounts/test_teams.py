"""Teams: names are unique, and who joins or leaves is told of."""

from __future__ import annotations

from typing import Any

import pytest

from webapp.accounts import people, teams
from webapp.accounts.errors import InvalidPersonError, PeopleError
from webapp.accounts.models import Act, AuditEntry, Role, Team, User
from webapp.accounts.signals import rights_changed

pytestmark = pytest.mark.django_db


@pytest.fixture
def told() -> Any:
    heard: list[int] = []

    def hear(user_id: int, **_: Any) -> None:
        heard.append(user_id)

    rights_changed.connect(hear)
    yield heard
    rights_changed.disconnect(hear)


def test_team_lives_from_its_making_to_its_end(
    administrator: User,
    alice: User,
    told: list[int],
    django_capture_on_commit_callbacks: Any,
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        team = teams.create_team(name="  Sales   North ", created_by=administrator)
        teams.rename_team(team=team, name="Sales", renamed_by=administrator)
        teams.add_member(team=team, person=alice, added_by=administrator)
        teams.add_member(team=team, person=alice, added_by=administrator)
    assert list(alice.teams.all()) == [team]
    with django_capture_on_commit_callbacks(execute=True):
        teams.remove_member(team=team, person=alice, removed_by=administrator)
        teams.add_member(team=team, person=alice, added_by=administrator)
        teams.delete_team(team=team, deleted_by=administrator)
    assert told == [alice.pk] * 4
    assert not Team.objects.exists()
    entries = AuditEntry.objects.filter(act=Act.TEAM_CHANGED).order_by("id")
    assert [entry.detail["change"] for entry in entries] == [
        *("made", "renamed", "joined", "left", "joined", "deleted")
    ]
    assert entries[0].subject_name == "Sales North"


@pytest.mark.parametrize("name", ["", "   ", "x" * 101])
def test_team_needs_a_name(administrator: User, name: str) -> None:
    with pytest.raises(InvalidPersonError):
        teams.create_team(name=name, created_by=administrator)


def test_two_teams_do_not_share_a_name_whatever_its_case(administrator: User) -> None:
    teams.create_team(name="Sales", created_by=administrator)
    other = teams.create_team(name="Board", created_by=administrator)
    with pytest.raises(PeopleError, match="already"):
        teams.create_team(name="SALES", created_by=administrator)
    with pytest.raises(PeopleError, match="already"):
        teams.rename_team(team=other, name="sales", renamed_by=administrator)
    teams.rename_team(team=other, name="BOARD", renamed_by=administrator)


def test_only_who_can_log_in_joins(administrator: User, alice: User) -> None:
    team = teams.create_team(name="Sales", created_by=administrator)
    tool = User.objects.create_user("tool@example.org", None, role=Role.SERVICE)
    disabled = people.disable_person(person=alice, disabled_by=administrator)
    for person in (tool, disabled):
        with pytest.raises(PeopleError, match="log in"):
            teams.add_member(team=team, person=person, added_by=administrator)
    assert not team.members.exists()
