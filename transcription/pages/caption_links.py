"""Links to captions: their owner's page, and what those read who have one.

A link's address is a key. It is shown once, it is blanked in the logs, and no page behind it tells
another site, or a search engine, of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from uuid import UUID

import segno
import structlog
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from transcription import selectors
from transcription.errors import InvalidInputError, ProductError
from transcription.models import LiveSession, ShareLink
from transcription.pages.errors import PAGES, Sentences, error_page
from transcription.pages.live import (
    LOOPBACK_NAMES,
    reading_addresses,
    room_context,
    status_of,
)
from transcription.pages.requests import PersonRequest
from transcription.services.caption_links import (
    LIFETIMES,
    create_caption_link,
    open_caption_link,
    revoke_caption_link,
)

log = structlog.get_logger(__name__)

SHOWN_LINKS = 50


class LinkForm(forms.Form):
    """For how long a new link is open."""

    hours = forms.TypedChoiceField(
        label="Open for", choices=list(LIFETIMES.items()), coerce=int, initial=24
    )


# The owner's page ---------------------------------------------------------------------------------


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def live_links(request: PersonRequest, session_id: UUID) -> HttpResponse:
    """Who may read, the session's links, and a new one, whose address only this answer has."""
    session = selectors.access_own_live_session_by_id(request.user, session_id)
    made: dict[str, object] | None = None
    if request.method == "POST":
        form = LinkForm(request.POST)
        if not form.is_valid():
            raise InvalidInputError("Choose for how long the link is open.")
        link, token = create_caption_link(session=session, hours=form.cleaned_data["hours"])
        address = request.build_absolute_uri(reverse("linked_captions", args=[token]))
        code = segno.make(address, micro=False, error="m")
        made = {
            "link": link,
            "address": address,
            "code": code.svg_data_uri(border=2, dark="#1a1f23", light="#ffffff", omitsize=True),
        }
    now = timezone.now()
    links = ShareLink.objects.filter(session=session)[:SHOWN_LINKS]
    base = made["address"] if made else request.build_absolute_uri(_captions_page(session))
    context = {
        "session": session,
        "made": made,
        "base": base,
        "captions_address": request.build_absolute_uri(_captions_page(session)),
        "form": LinkForm(),
        "links": [(link, link.is_open(now)) for link in links],
        "is_offered": settings.SITE.share_links,
        "is_loopback": request.get_host().rsplit(":", 1)[0] in LOOPBACK_NAMES,
    }
    return render(request, "live/links.html", context)


@login_required
@require_POST
def live_link_revoke(request: PersonRequest, link_id: UUID) -> HttpResponse:
    link = selectors.access_own_caption_link_by_id(request.user, link_id)
    revoke_caption_link(link=link)
    messages.success(request, "The link is withdrawn. Who reads by it is sent away.")
    return redirect("live_links", link.session_id)


def _captions_page(session: LiveSession) -> str:
    return reverse("live_captions", args=[session.id])


# What is behind a link ----------------------------------------------------------------------------

View = Callable[[HttpRequest, LiveSession], HttpResponse]


def behind_link(view: View) -> Callable[..., HttpResponse]:
    """A view of the session that the token in the address leads to, or a refusal that says why."""

    @functools.wraps(view)
    @never_cache
    @require_safe
    def guarded(request: HttpRequest, token: str) -> HttpResponse:
        try:
            link = open_caption_link(token=token, address=request.META.get("REMOTE_ADDR", ""))
            response = view(request, link.live_session)
        except ProductError as error:
            said = PAGES[error.status]
            advice = "Ask the person who sent you the link for a new one."
            response = error_page(
                request,
                error.status,
                Sentences("These captions are closed", error.text, advice)
                if error.status == 404
                else Sentences(said.title, error.text, said.advice),
            )
        response["Referrer-Policy"] = "no-referrer"
        response["X-Robots-Tag"] = "noindex, nofollow"
        return response

    return guarded


@behind_link
def linked_captions(request: HttpRequest, session: LiveSession) -> HttpResponse:
    log.info("caption_link_opened", session=str(session.id))
    context: dict[str, Any] = {
        "session": session,
        "reading": reading_addresses(session, by_link=True),
        "by_link": True,
    }
    return render(request, "live/captions.html", context)


@behind_link
def linked_room(request: HttpRequest, session: LiveSession) -> HttpResponse:
    context = room_context(request, session, by_link=True)
    context["reading"] = {**reading_addresses(session, by_link=True), "status": "../status/"}
    return render(request, "live/room.html", context | {"by_link": True})


@behind_link
def linked_status(request: HttpRequest, session: LiveSession) -> HttpResponse:
    return JsonResponse(status_of(session, recording=None))


urlpatterns = [
    path("live/<uuid:session_id>/links/", live_links, name="live_links"),
    path("live/links/<uuid:link_id>/revoke/", live_link_revoke, name="live_link_revoke"),
    path("s/<slug:token>/", linked_captions, name="linked_captions"),
    path("s/<slug:token>/room/", linked_room, name="linked_room"),
    path("s/<slug:token>/status/", linked_status, name="linked_status"),
]
