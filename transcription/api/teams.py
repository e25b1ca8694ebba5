"""REST v1, for administrators: teams and their members."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpResponse
from django.urls import reverse
from ninja import Query, Router

from transcription.api.access import ADMINISTERS, ApiRequest
from transcription.api.answers import check_unchanged, checks_tag, tagged
from transcription.api.cursors import Page, Paging, newest_first
from transcription.api.repetition import once_by_key
from transcription.api.resources.people import TeamIn, TeamOut
from transcription.api.words import check_key
from transcription.errors import NotFoundError
from webapp.accounts import teams
from webapp.accounts.models import Team, User

router = Router()


@router.get("", auth=ADMINISTERS, response=Page[TeamOut])
def list_teams(request: ApiRequest, paging: Query[Paging]) -> Page[TeamOut]:
    """All teams, the newest first."""
    rows, next_cursor = newest_first(
        Team.objects.prefetch_related("members"), paging, by="created_at"
    )
    return Page(items=[TeamOut.of(row) for row in rows], next_cursor=next_cursor)


@router.post("", auth=ADMINISTERS, response={201: TeamOut})
@once_by_key()
def create_team(request: ApiRequest, asked: TeamIn) -> HttpResponse:
    """Make a team."""
    team = teams.create_team(name=asked.name, created_by=request.auth)
    location = reverse("api-v1:read_team", args=[team.pk])
    return tagged(request, TeamOut.of(team), status=201, location=location)


@router.get("/{team_id}", auth=ADMINISTERS, response={200: TeamOut, 304: None})
def read_team(request: ApiRequest, team_id: int) -> HttpResponse:
    """One team."""
    return tagged(request, TeamOut.of(_team(team_id)))


@router.put("/{team_id}", auth=ADMINISTERS, response=TeamOut)
@checks_tag
def rename_team(request: ApiRequest, team_id: int, asked: TeamIn) -> HttpResponse:
    """Call a team otherwise."""
    with transaction.atomic():
        team = _team(team_id)
        check_unchanged(request, TeamOut.of(team))
        team = teams.rename_team(team=team, name=asked.name, renamed_by=request.auth)
    return tagged(request, TeamOut.of(team))


@router.delete("/{team_id}", auth=ADMINISTERS, response={204: None})
@checks_tag
def delete_team(request: ApiRequest, team_id: int) -> HttpResponse:
    """Delete a team. What its members own stays theirs."""
    with transaction.atomic():
        team = _team(team_id)
        check_unchanged(request, TeamOut.of(team))
        teams.delete_team(team=team, deleted_by=request.auth)
    return HttpResponse(status=204)


@router.put("/{team_id}/members/{user_id}", auth=ADMINISTERS, response=TeamOut)
def add_team_member(request: ApiRequest, team_id: int, user_id: int) -> HttpResponse:
    """Let somebody join; harmless for a member."""
    team = _team(team_id)
    teams.add_member(team=team, person=_person(user_id), added_by=request.auth)
    return tagged(request, TeamOut.of(_team(team_id)))


@router.delete("/{team_id}/members/{user_id}", auth=ADMINISTERS, response={204: None})
def remove_team_member(request: ApiRequest, team_id: int, user_id: int) -> HttpResponse:
    """What was shared with the team is theirs to read no more; harmless for whoever is none."""
    teams.remove_member(team=_team(team_id), person=_person(user_id), removed_by=request.auth)
    return HttpResponse(status=204)


def _team(team_id: int) -> Team:
    team = Team.objects.filter(pk=check_key(team_id)).first()
    if team is None:
        raise NotFoundError
    return team


def _person(user_id: int) -> User:
    person = User.objects.filter(pk=check_key(user_id)).first()
    if person is None:
        raise NotFoundError
    return person
