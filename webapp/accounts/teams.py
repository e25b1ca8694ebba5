"""Teams: made by administrators, for sharing with several people at once and for retention.

Who joins or leaves gains or loses what is shared with the team, at once and on open sockets.
"""

from __future__ import annotations

from django.db import IntegrityError, transaction

from webapp.accounts.audit import record_act
from webapp.accounts.errors import InvalidPersonError, PeopleError
from webapp.accounts.models import Act, Role, Team, User
from webapp.accounts.signals import tell_rights_changed


def create_team(*, name: str, created_by: User) -> Team:
    """Raises InvalidPersonError, PeopleError where the name is taken."""
    name = _clean_name(name)
    with transaction.atomic():
        _check_name_is_free(name)
        try:
            with transaction.atomic():
                team = Team.objects.create(name=name)
        except IntegrityError:  # two at once pass the look
            raise _taken(name) from None
        record_act(act=Act.TEAM_CHANGED, actor=created_by, on=team, detail={"change": "made"})
    return team


def rename_team(*, team: Team, name: str, renamed_by: User) -> Team:
    """Raises InvalidPersonError, PeopleError where the name is taken."""
    name = _clean_name(name)
    with transaction.atomic():
        _check_name_is_free(name, but_of=team)
        before, team.name = team.name, name
        try:
            with transaction.atomic():
                team.save(update_fields=["name"])
        except IntegrityError:
            raise _taken(name) from None
        detail = {"change": "renamed", "from": before}
        record_act(act=Act.TEAM_CHANGED, actor=renamed_by, on=team, detail=detail)
    return team


def delete_team(*, team: Team, deleted_by: User) -> None:
    """What its members own stays theirs; what was shared with the team is so no more.

    Raises PeopleError where something else that belongs to the team stands against it.
    """
    with transaction.atomic():
        members = list(team.members.values_list("pk", flat=True))
        detail: dict[str, str | int] = {"change": "deleted", "members": len(members)}
        record_act(act=Act.TEAM_CHANGED, actor=deleted_by, on=team, detail=detail)
        team.delete()
        for user_id in members:
            tell_rights_changed(user_id=user_id)


def add_member(*, team: Team, person: User, added_by: User) -> None:
    """Harmless for a member. Raises PeopleError for whom there is no log-in."""
    if person.role == Role.SERVICE or not person.is_active:
        raise PeopleError("Only people who can log in join a team.")
    with transaction.atomic():
        if team.members.filter(pk=person.pk).exists():
            return
        team.members.add(person)
        detail = {"change": "joined", "person": person.email}
        record_act(act=Act.TEAM_CHANGED, actor=added_by, on=team, detail=detail)
        tell_rights_changed(user_id=person.pk)


def remove_member(*, team: Team, person: User, removed_by: User) -> None:
    """Harmless for whoever is none."""
    with transaction.atomic():
        if not team.members.filter(pk=person.pk).exists():
            return
        team.members.remove(person)
        detail = {"change": "left", "person": person.email}
        record_act(act=Act.TEAM_CHANGED, actor=removed_by, on=team, detail=detail)
        tell_rights_changed(user_id=person.pk)


def _clean_name(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > 100:
        raise InvalidPersonError("A team has a name of at most 100 characters.")
    return name


def _check_name_is_free(name: str, but_of: Team | None = None) -> None:
    others = Team.objects.filter(name__iexact=name)
    if but_of is not None:
        others = others.exclude(pk=but_of.pk)
    if others.exists():
        raise _taken(name)


def _taken(name: str) -> PeopleError:
    return PeopleError(f"There is a team “{name}” already.")
