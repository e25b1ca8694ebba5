"""REST v1, for administrators: people and service accounts."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q
from django.http import HttpResponse
from django.urls import reverse
from ninja import Query, Router

from transcription.api.access import ADMINISTERS, ApiRequest
from transcription.api.answers import check_unchanged, checks_tag, tagged
from transcription.api.cursors import Page, Paging, newest_first
from transcription.api.repetition import once_by_key
from transcription.api.resources.people import (
    PasswordLink,
    UserChange,
    UserFilter,
    UserIn,
    UserOut,
)
from transcription.api.words import check_key
from transcription.errors import ConflictError, InvalidInputError, NotFoundError
from webapp.accounts import people
from webapp.accounts.links import password_link
from webapp.accounts.models import Role, User
from webapp.accounts.service_accounts import make_service_account

router = Router()


@router.get("", auth=ADMINISTERS, response=Page[UserOut])
def list_users(
    request: ApiRequest, wanted: Query[UserFilter], paging: Query[Paging]
) -> Page[UserOut]:
    """People and service accounts, who came last first."""
    users = User.objects.prefetch_related("teams")
    if wanted.q:
        users = users.filter(Q(name__icontains=wanted.q) | Q(email__icontains=wanted.q))
    if wanted.role is not None:
        users = users.filter(role=wanted.role)
    if wanted.is_active is not None:
        users = users.filter(is_active=wanted.is_active)
    rows, next_cursor = newest_first(users, paging, by="date_joined")
    return Page(items=[UserOut.of(row) for row in rows], next_cursor=next_cursor)


@router.post("", auth=ADMINISTERS, response={201: UserOut})
@once_by_key()
def create_user(request: ApiRequest, asked: UserIn) -> HttpResponse:
    """Invite a person, who chooses a password by a link (`password-link`), or make a service
    account."""
    if asked.role == Role.SERVICE:
        if asked.email:
            raise InvalidInputError("A service account has no e-mail address.")
        user = make_service_account(name=asked.name, made_by=request.auth)
    else:
        user = people.invite_person(
            email=asked.email, name=asked.name, role=asked.role, invited_by=request.auth
        )
    location = reverse("api-v1:read_user", args=[user.pk])
    return tagged(request, UserOut.of(user), status=201, location=location)


@router.get("/{user_id}", auth=ADMINISTERS, response={200: UserOut, 304: None})
def read_user(request: ApiRequest, user_id: int) -> HttpResponse:
    """One of them."""
    return tagged(request, UserOut.of(_user(user_id)))


@router.patch("/{user_id}", auth=ADMINISTERS, response=UserOut)
@checks_tag
def change_user(request: ApiRequest, user_id: int, change: UserChange) -> HttpResponse:
    """Change a role; disable somebody, who is logged out everywhere at once, or enable them.

    The last administrator stays one, and nobody disables themselves.
    """
    with transaction.atomic():
        user = _user(user_id)
        check_unchanged(request, UserOut.of(user))
        if change.role is not None:
            user = people.change_role(person=user, role=change.role, changed_by=request.auth)
        if change.is_active is False:
            user = people.disable_person(person=user, disabled_by=request.auth)
        elif change.is_active is True:
            user = people.enable_person(person=user, enabled_by=request.auth)
    return tagged(request, UserOut.of(user))


@router.post("/{user_id}/password-link", auth=ADMINISTERS, response=PasswordLink)
def make_password_link(request: ApiRequest, user_id: int) -> PasswordLink:
    """Where this person chooses a new password; to be handed over and shown to nobody else."""
    user = _user(user_id)
    if user.role == Role.SERVICE or not user.is_active:
        raise ConflictError("Only people who can log in choose a password.")
    return PasswordLink(url=password_link(user=user))


@router.post("/{user_id}/end-sessions", auth=ADMINISTERS, response={204: None})
def end_user_sessions(request: ApiRequest, user_id: int) -> HttpResponse:
    """Log this person out of every browser."""
    people.end_sessions(person=_user(user_id), ended_by=request.auth)
    return HttpResponse(status=204)


@router.post("/{user_id}/reset-factors", auth=ADMINISTERS, response={204: None})
def reset_user_factors(request: ApiRequest, user_id: int) -> HttpResponse:
    """Forget this person's app, recovery codes and passkeys."""
    people.reset_factors(person=_user(user_id), reset_by=request.auth)
    return HttpResponse(status=204)


def _user(user_id: int) -> User:
    user = User.objects.filter(pk=check_key(user_id)).first()
    if user is None:
        raise NotFoundError
    return user
