"""People: invite them, and help, promote, disable them. Links to choose a password are to copy."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from transcription.errors import NotFoundError
from transcription.pages.administration import administrators_only
from transcription.pages.requests import PersonRequest
from webapp.accounts import people, selectors, teams
from webapp.accounts.errors import PeopleError
from webapp.accounts.models import Role, Team, User

PEOPLE_A_PAGE: Final = 50
LONGEST_QUERY: Final = 100
ROLES: Final = [(role.value, role.label) for role in people.ROLES_OF_PEOPLE]


class InvitationForm(forms.Form):
    """Whom to let in."""

    email = forms.EmailField(label="E-mail address", max_length=254)
    name = forms.CharField(label="Name", max_length=150, required=False)
    role = forms.ChoiceField(label="Role", choices=ROLES, initial=Role.STAFF)


class JoinForm(forms.Form):
    """Which team they join."""

    team = forms.ModelChoiceField(Team.objects.all())


class DetailsForm(forms.ModelForm[User]):
    """What an administrator mends."""

    class Meta:
        model = User
        fields = ("name", "email")

    def validate_unique(self) -> None:
        """The service says it, in its own words."""


@administrators_only
@require_safe
def all_people(request: PersonRequest) -> HttpResponse:
    """Everybody, a page at a time, searched by `q`; whoever cannot log in stands last."""
    return _list_page(request, InvitationForm())


@administrators_only
@never_cache
@require_POST
def invite(request: PersonRequest) -> HttpResponse:
    """Make a person, and show their page with the link to hand over, which only this answer has."""
    form = InvitationForm(request.POST)
    if not form.is_valid():
        return _list_page(request, form, status=400)
    try:
        person = people.invite_person(**form.cleaned_data, invited_by=request.user)
    except PeopleError as error:
        form.add_error("email", error.text)
        return _list_page(request, form, status=error.status)
    link = people.make_password_link(person=person, made_by=request.user)
    return _person_page(request, person, link=link)


@administrators_only
@never_cache
@require_safe
def one_person(request: PersonRequest, person_id: int) -> HttpResponse:
    return _person_page(request, _person(person_id))


@administrators_only
@never_cache
@require_POST
def make_link(request: PersonRequest, person_id: int) -> HttpResponse:
    """The page once more with a link that only this answer has."""
    person = _person(person_id)
    try:
        link = people.make_password_link(person=person, made_by=request.user)
    except PeopleError as error:
        return _refused(request, person, error)
    return _person_page(request, person, link=link)


@administrators_only
@require_POST
def change_details(request: PersonRequest, person_id: int) -> HttpResponse:
    person = _person(person_id)
    form = DetailsForm(request.POST)
    if form.is_valid():
        try:
            person = people.change_details(
                person=person, **form.cleaned_data, changed_by=request.user
            )
        except PeopleError as error:
            form.add_error("email", error.text)
        else:
            return _done(request, person, f"{person} is saved.")
    return _person_page(request, person, form=form, status=400)


@administrators_only
@require_POST
def disable(request: PersonRequest, person_id: int) -> HttpResponse:
    person = _person(person_id)
    try:
        people.disable_person(person=person, disabled_by=request.user)
    except PeopleError as error:
        return _refused(request, person, error)
    return _done(request, person, f"{person} is disabled and logged out everywhere.")


@administrators_only
@require_POST
def enable(request: PersonRequest, person_id: int) -> HttpResponse:
    person = _person(person_id)
    people.enable_person(person=person, enabled_by=request.user)
    return _done(request, person, f"{person} may log in again.")


@administrators_only
@require_POST
def change_role(request: PersonRequest, person_id: int) -> HttpResponse:
    person = _person(person_id)
    try:
        role = request.POST.get("role", "")
        person = people.change_role(person=person, role=role, changed_by=request.user)
    except PeopleError as error:
        return _refused(request, person, error)
    return _done(request, person, f"{person}: {person.get_role_display()} from now on.")


@administrators_only
@require_POST
def reset_factors(request: PersonRequest, person_id: int) -> HttpResponse:
    person = _person(person_id)
    people.reset_factors(person=person, reset_by=request.user)
    return _done(request, person, f"{person} logs in by the password alone until they add another.")


@administrators_only
@require_POST
def end_sessions(request: PersonRequest, person_id: int) -> HttpResponse:
    person = _person(person_id)
    people.end_sessions(person=person, ended_by=request.user)
    return _done(request, person, f"{person} is logged out everywhere.")


@administrators_only
@require_POST
def join_team(request: PersonRequest, person_id: int) -> HttpResponse:
    person = _person(person_id)
    form = JoinForm(request.POST)
    if not form.is_valid():
        raise NotFoundError
    team = form.cleaned_data["team"]
    try:
        teams.add_member(team=team, person=person, added_by=request.user)
    except PeopleError as error:
        return _refused(request, person, error)
    return _done(request, person, f"{person} is in the team {team}.")


def _person(person_id: int) -> User:
    person = selectors.people_matching().filter(pk=person_id).first()
    if person is None:
        raise NotFoundError
    return person


def _list_page(request: PersonRequest, form: InvitationForm, status: int = 200) -> HttpResponse:
    query = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST_QUERY]
    found = selectors.people_matching(query).prefetch_related("teams")
    context = {
        "page": Paginator(found, PEOPLE_A_PAGE).get_page(request.GET.get("page")),
        "person_query": query,
        "form": form,
    }
    return render(request, "administration/people.html", context, status=status)


def _person_page(
    request: PersonRequest,
    person: User,
    link: str = "",
    form: DetailsForm | None = None,
    status: int = 200,
) -> HttpResponse:
    context: dict[str, Any] = {
        "person": person,
        "link": link,
        "form": form or DetailsForm(instance=person),
        "is_self": person == request.user,
        "teams": person.teams.all(),
        "other_teams": Team.objects.exclude(members=person),
        "factors": selectors.factors_of(person),
        "sessions": [
            (session, selectors.browser_words(session.user_agent))
            for session in selectors.sessions_of(person)
        ],
        "roles": ROLES,
    }
    return render(request, "administration/person.html", context, status=status)


def _done(request: PersonRequest, person: User, sentence: str) -> HttpResponse:
    messages.success(request, sentence)
    return redirect("administration_people_one", person.pk)


def _refused(request: PersonRequest, person: User, error: PeopleError) -> HttpResponse:
    messages.error(request, f"{error.text} Nothing was changed.")
    return redirect("administration_people_one", person.pk)


urlpatterns = [
    path("people/", all_people, name="administration_people"),
    path("people/invite/", invite, name="administration_people_invite"),
    path("people/<int:person_id>/", one_person, name="administration_people_one"),
    path("people/<int:person_id>/link/", make_link, name="administration_people_link"),
    path("people/<int:person_id>/details/", change_details, name="administration_people_details"),
    path("people/<int:person_id>/disable/", disable, name="administration_people_disable"),
    path("people/<int:person_id>/enable/", enable, name="administration_people_enable"),
    path("people/<int:person_id>/role/", change_role, name="administration_people_role"),
    path("people/<int:person_id>/factors/", reset_factors, name="administration_people_factors"),
    path("people/<int:person_id>/sessions/", end_sessions, name="administration_people_sessions"),
    path("people/<int:person_id>/teams/", join_team, name="administration_people_join"),
]
