"""Teams: who belongs together, for sharing with all of them and for retention."""

from __future__ import annotations

from typing import Final

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from transcription.pages.administration import administrators_only
from transcription.pages.requests import PersonRequest
from webapp.accounts import selectors, teams
from webapp.accounts.errors import PeopleError
from webapp.accounts.models import Team, User

PROPOSED_PEOPLE: Final = 500
"""In the list below the field; others are found by their whole address."""


class TeamForm(forms.Form):
    name = forms.CharField(label="Name", max_length=100)


class MemberForm(forms.Form):
    """Who joins, by their whole address."""

    email = forms.EmailField(
        label="E-mail address of a colleague",
        max_length=254,
        widget=forms.EmailInput({"list": "people", "autocomplete": "off"}),
    )

    def clean_email(self) -> User:
        """Whose address it is."""
        address: str = self.cleaned_data["email"]
        person = User.objects.filter(email__iexact=address).first()
        if person is None:
            raise forms.ValidationError(f"Nobody here has the address “{address}”.")
        return person


@administrators_only
@require_safe
def all_teams(request: PersonRequest) -> HttpResponse:
    return _list_page(request, TeamForm())


@administrators_only
@require_POST
def create(request: PersonRequest) -> HttpResponse:
    form = TeamForm(request.POST)
    if form.is_valid():
        try:
            team = teams.create_team(name=form.cleaned_data["name"], created_by=request.user)
        except PeopleError as error:
            form.add_error("name", error.text)
        else:
            messages.success(request, f"The team {team} is made. Add its members.")
            return redirect("administration_teams_one", team.pk)
    return _list_page(request, form, status=400)


@administrators_only
@require_safe
def one_team(request: PersonRequest, team_id: int) -> HttpResponse:
    team = get_object_or_404(Team, pk=team_id)
    return _team_page(request, team)


@administrators_only
@require_POST
def rename(request: PersonRequest, team_id: int) -> HttpResponse:
    team = get_object_or_404(Team, pk=team_id)
    form = TeamForm(request.POST)
    if form.is_valid():
        try:
            teams.rename_team(team=team, name=form.cleaned_data["name"], renamed_by=request.user)
        except PeopleError as error:
            form.add_error("name", error.text)
        else:
            messages.success(request, f"The team is called {team} now.")
            return redirect("administration_teams_one", team.pk)
    team.refresh_from_db()
    return _team_page(request, team, form=form, status=400)


@administrators_only
@require_POST
def delete(request: PersonRequest, team_id: int) -> HttpResponse:
    team = get_object_or_404(Team, pk=team_id)
    try:
        teams.delete_team(team=team, deleted_by=request.user)
    except PeopleError as error:
        messages.error(request, f"{error.text} Nothing was changed.")
        return redirect("administration_teams_one", team.pk)
    messages.success(request, f"The team {team} is deleted. Its recordings stay with their owners.")
    return redirect("administration_teams")


@administrators_only
@require_POST
def add_member(request: PersonRequest, team_id: int) -> HttpResponse:
    team = get_object_or_404(Team, pk=team_id)
    form = MemberForm(request.POST)
    if form.is_valid():
        person = form.cleaned_data["email"]
        try:
            teams.add_member(team=team, person=person, added_by=request.user)
        except PeopleError as error:
            form.add_error("email", error.text)
        else:
            messages.success(request, f"{person} is in the team {team}.")
            return redirect("administration_teams_one", team.pk)
    return _team_page(request, team, member_form=form, status=400)


@administrators_only
@require_POST
def remove_member(request: PersonRequest, team_id: int, person_id: int) -> HttpResponse:
    team = get_object_or_404(Team, pk=team_id)
    person = get_object_or_404(User, pk=person_id)
    teams.remove_member(team=team, person=person, removed_by=request.user)
    messages.success(request, f"{person} is no longer in the team {team}.")
    return _back(request, team)


def _list_page(request: PersonRequest, form: TeamForm, status: int = 200) -> HttpResponse:
    context = {"teams": selectors.teams_with_size(), "form": form}
    return render(request, "administration/teams.html", context, status=status)


def _team_page(
    request: PersonRequest,
    team: Team,
    *,
    form: TeamForm | None = None,
    member_form: MemberForm | None = None,
    status: int = 200,
) -> HttpResponse:
    outside = selectors.people_matching().filter(is_active=True).exclude(teams=team)
    context = {
        "team": team,
        "form": form or TeamForm(initial={"name": team.name}),
        "member_form": member_form or MemberForm(),
        "members": team.members.order_by("name", "email"),
        "others": outside[:PROPOSED_PEOPLE],
    }
    return render(request, "administration/team.html", context, status=status)


def _back(request: PersonRequest, team: Team) -> HttpResponse:
    """To the page that the form stood on: the team's or a person's."""
    address = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(address, allowed_hosts=None):
        return redirect(address)
    return redirect("administration_teams_one", team.pk)


urlpatterns = [
    path("teams/", all_teams, name="administration_teams"),
    path("teams/new/", create, name="administration_teams_new"),
    path("teams/<int:team_id>/", one_team, name="administration_teams_one"),
    path("teams/<int:team_id>/rename/", rename, name="administration_teams_rename"),
    path("teams/<int:team_id>/delete/", delete, name="administration_teams_delete"),
    path("teams/<int:team_id>/members/", add_member, name="administration_teams_add"),
    path(
        "teams/<int:team_id>/members/<int:person_id>/remove/",
        remove_member,
        name="administration_teams_remove",
    ),
]
