"""People and teams: as others see them, and as administrators do."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from ninja import Schema
from pydantic import Field, StrictBool

from transcription.api.words import Body, Line
from webapp.accounts.models import Role, Team, User


class PersonName(Schema):
    """Who somebody is."""

    id: int
    name: str

    @staticmethod
    def of(user: User) -> PersonName:
        return PersonName(id=user.pk, name=str(user))


class TeamName(Schema):
    """People who share recordings."""

    id: int
    name: str

    @staticmethod
    def of(team: Team) -> TeamName:
        return TeamName(id=team.pk, name=team.name)


class UserOut(Schema):
    """A person, or a service account, which is a tool that has tokens and cannot log in."""

    id: int
    email: str
    name: str
    role: Role
    is_active: bool
    teams: list[TeamName]
    last_login: datetime | None
    date_joined: datetime

    @staticmethod
    def of(user: User) -> UserOut:
        return UserOut(
            id=user.pk,
            email=user.email,
            name=user.name,
            role=Role(user.role),
            is_active=user.is_active,
            teams=[TeamName.of(team) for team in user.teams.all()],
            last_login=user.last_login,
            date_joined=user.date_joined,
        )


class UserFilter(Schema):
    """Which people and service accounts."""

    q: Annotated[Line, Field(max_length=100, description="Part of the name or the address.")] = ""
    role: Role | None = None
    is_active: bool | None = None


class UserIn(Body):
    """A person needs an e-mail address; a service account a name alone."""

    email: Annotated[Line, Field(max_length=254)] = ""
    name: Annotated[Line, Field(max_length=150)] = ""
    role: Role = Role.STAFF


class UserChange(Body):
    """What is left out stays as it is."""

    role: Role | None = None
    is_active: StrictBool | None = None


class PasswordLink(Schema):
    """A secret address where the person chooses a password, good once and for three days."""

    url: str


class TeamOut(Schema):
    """A team and its members."""

    id: int
    name: str
    members: list[PersonName]

    @staticmethod
    def of(team: Team) -> TeamOut:
        members = sorted(team.members.all(), key=lambda member: member.pk)
        return TeamOut(
            id=team.pk, name=team.name, members=[PersonName.of(member) for member in members]
        )


class TeamIn(Body):
    """What a team is called."""

    name: Annotated[Line, Field(min_length=1, max_length=100)]
