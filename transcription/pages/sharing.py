"""The owner's page of who may read a recording or a live session: everybody, people and teams, and
links for those who have no account.

A link's address is shown once, by the answer that made it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import segno
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from transcription import selectors
from transcription.errors import InvalidInputError, NotFoundError
from transcription.models import LiveSession, Recording, Share, ShareLink
from transcription.pages.audience import SHOWN_OPENINGS, is_for_everybody
from transcription.pages.live import LOOPBACK_NAMES
from transcription.pages.requests import PersonRequest
from transcription.services import sharing
from transcription.services.share_links import (
    create_share_link,
    lifetimes_of,
    revoke_share_link,
)
from webapp.accounts.models import Team, User

Thing = Recording | LiveSession

SHOWN_LINKS: Final = 50
SHOWN_FOUND: Final = 8
LONGEST_QUERY: Final = 100
USUAL_HOURS: Final = 24
KINDS: Final[dict[str, Callable[..., Thing]]] = {
    "recordings": selectors.access_own_recording_by_id,
    "live": selectors.access_own_live_session_by_id,
}
"""The first part of an address, and how its owner gets at what follows."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Somebody whom the search found; `key` is what the form sends."""

    key: str
    name: str
    about: str


class LinkForm(forms.Form):
    """For how long a new link is open."""

    def __init__(self, *args: Any, lifetimes: dict[int, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["hours"] = forms.TypedChoiceField(
            label="Open for", choices=list(lifetimes.items()), coerce=int, initial=USUAL_HOURS
        )


# The page -----------------------------------------------------------------------------------------


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def share_page(request: PersonRequest, kind: str, thing_id: UUID) -> HttpResponse:
    """Who may read, the links, and by POST a new one, whose address only this answer has."""
    thing = KINDS[kind](request.user, thing_id)
    made = _make_link(request, thing) if request.method == "POST" else None
    now = timezone.now()
    links = _links_to(thing)
    shares = list(thing.shares.select_related("person", "team"))
    query = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST_QUERY]
    page_address = request.build_absolute_uri(_page_of(thing))
    context: dict[str, object] = {
        "kind": kind,
        "thing": thing,
        "page": _page_of(thing),
        "is_live": isinstance(thing, LiveSession),
        "is_wide": is_for_everybody(thing),
        "openings": selectors.openings_shown_to(request.user, thing)[:SHOWN_OPENINGS],
        "recording": thing.recording if isinstance(thing, LiveSession) else None,
        "shares": shares,
        "person_query": query,
        "found": _found(request.user, query, shares) if query else [],
        "made": made,
        "form": LinkForm(lifetimes=lifetimes_of(thing)),
        "links": [(link, link.is_open(now)) for link in links],
        "is_offered": settings.SITE.share_links,
        "is_loopback": request.get_host().rsplit(":", 1)[0] in LOOPBACK_NAMES,
        "page_address": page_address,
        "base": made["address"] if made else page_address,
    }
    return render(request, "sharing/share.html", context)


def _make_link(request: PersonRequest, thing: Thing) -> dict[str, object]:
    form = LinkForm(request.POST, lifetimes=lifetimes_of(thing))
    if not form.is_valid():
        raise InvalidInputError("Choose for how long the link is open.")
    link, token = create_share_link(
        thing=thing, hours=form.cleaned_data["hours"], made_by=request.user
    )
    name = "linked_recording" if isinstance(thing, Recording) else "linked_captions"
    address = request.build_absolute_uri(reverse(name, args=[token]))
    code = segno.make(address, micro=False, error="m")
    return {
        "link": link,
        "address": address,
        "code": code.svg_data_uri(border=2, dark="#1a1f23", light="#ffffff", omitsize=True),
    }


def _links_to(thing: Thing) -> Iterable[ShareLink]:
    """To a recording, and to the captions of the session that it was."""
    of_thing = Q(session=thing.id) | Q(recording=thing.id)
    return ShareLink.objects.filter(of_thing)[:SHOWN_LINKS]


def _page_of(thing: Thing) -> str:
    return reverse(
        "recording" if isinstance(thing, Recording) else "live_captions", args=[thing.id]
    )


def _found(user: User, query: str, shares: list[Share]) -> list[Candidate]:
    """Teams, then people, with these signs in their name or address, who do not read it yet."""
    teams = selectors.teams_to_share_with(user).filter(name__icontains=query)
    people = selectors.people_to_share_with(user).filter(
        Q(name__icontains=query) | Q(email__icontains=query)
    )
    teams = teams.exclude(pk__in=[share.team_id for share in shares if share.team_id])
    people = people.exclude(pk__in=[share.person_id for share in shares if share.person_id])
    return [
        *(Candidate(f"team.{team.pk}", team.name, "Team") for team in teams[:SHOWN_FOUND]),
        *(
            Candidate(f"person.{person.pk}", str(person), person.email if person.name else "")
            for person in people[:SHOWN_FOUND]
        ),
    ]


# What it does -------------------------------------------------------------------------------------


@login_required
@require_POST
def set_audience(request: PersonRequest, kind: str, thing_id: UUID) -> HttpResponse:
    thing = KINDS[kind](request.user, thing_id)
    audience = request.POST.get("audience")
    if audience not in {"everybody", "owner"}:
        raise InvalidInputError
    is_wide = audience == "everybody"
    sharing.set_audience(thing=thing, is_organisation_wide=is_wide, set_by=request.user)
    who = "Everybody who can log in" if is_wide else "Only you and whom you name"
    messages.success(request, f"{who} can read this now.")
    return redirect(f"{kind}_share", thing.id)


@login_required
@require_POST
def add_share(request: PersonRequest, kind: str, thing_id: UUID) -> HttpResponse:
    """`with` names a person or a team, `right` is read or edit."""
    thing = KINDS[kind](request.user, thing_id)
    with_ = _named(request)
    share = sharing.share_with(
        thing=thing, sharer=request.user, with_=with_, can_edit=_can_edit(request)
    )
    messages.success(request, f"{with_} can {_words_of(share)} this now.")
    return redirect(f"{kind}_share", thing.id)


@login_required
@require_POST
def change_share(request: PersonRequest, share_id: int) -> HttpResponse:
    share = selectors.access_own_share_by_id(request.user, share_id)
    thing, with_ = _thing_of(share), share.person or share.team
    if with_ is None:
        raise NotFoundError
    share = sharing.share_with(
        thing=thing, sharer=request.user, with_=with_, can_edit=_can_edit(request)
    )
    messages.success(request, f"{with_} can {_words_of(share)} this now.")
    return _back(thing)


@login_required
@require_POST
def stop_share(request: PersonRequest, share_id: int) -> HttpResponse:
    share = selectors.access_own_share_by_id(request.user, share_id)
    sharing.stop_sharing(share=share, stopped_by=request.user)
    messages.success(
        request, f"It is no longer shared with {share.person or share.team}. Open pages close."
    )
    return _back(_thing_of(share))


@login_required
@require_POST
def revoke_link(request: PersonRequest, link_id: UUID) -> HttpResponse:
    link = selectors.access_own_share_link_by_id(request.user, link_id)
    revoke_share_link(link=link, revoked_by=request.user)
    messages.success(request, "The link is withdrawn. Who reads by it is sent away.")
    return _back(link.thing)


def _named(request: PersonRequest) -> User | Team:
    kind, _, number = request.POST.get("with", "").partition(".")
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise InvalidInputError("Choose a person or a team.")
    found: User | Team | None = None
    if kind == "person":
        found = selectors.people_to_share_with(request.user).filter(pk=int(number)).first()
    elif kind == "team":
        found = selectors.teams_to_share_with(request.user).filter(pk=int(number)).first()
    if found is None:
        raise InvalidInputError("This person or team is not here any more. Nothing was shared.")
    return found


def _can_edit(request: HttpRequest) -> bool:
    right = request.POST.get("right")
    if right not in {"read", "edit"}:
        raise InvalidInputError
    return right == "edit"


def _words_of(share: Share) -> str:
    return "read and edit" if share.can_edit else "read"


def _thing_of(share: Share) -> Thing:
    thing = share.recording or share.session
    if thing is None:
        raise NotFoundError
    return thing


def _back(thing: Thing) -> HttpResponse:
    return redirect("recordings_share" if isinstance(thing, Recording) else "live_share", thing.id)


urlpatterns = [
    *(
        path(f"{kind}/<uuid:thing_id>/{tail}", view, {"kind": kind}, name=f"{kind}_{name}")
        for kind in KINDS
        for tail, view, name in (
            ("share/", share_page, "share"),
            ("share/audience/", set_audience, "audience"),
            ("share/add/", add_share, "share_add"),
        )
    ),
    path("shares/<int:share_id>/", change_share, name="share_change"),
    path("shares/<int:share_id>/stop/", stop_share, name="share_stop"),
    path("links/<uuid:link_id>/revoke/", revoke_link, name="share_link_revoke"),
]
