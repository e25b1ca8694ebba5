"""The captions of one live session, for whoever has a link to them: `/s/<token>/`."""

from __future__ import annotations

from typing import Any

import structlog
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import path

from transcription.models import ShareLink
from transcription.pages.behind_links import behind_link
from transcription.pages.live import reading_addresses, room_context, status_of
from transcription.services.share_links import open_caption_link

log = structlog.get_logger(__name__)

behind_caption_link = behind_link(open_caption_link, closed="These captions are closed")


@behind_caption_link
def linked_captions(request: HttpRequest, link: ShareLink) -> HttpResponse:
    session = link.live_session
    log.info("share_link_opened", leads_to=str(session.id))
    context: dict[str, Any] = {
        "session": session,
        "reading": reading_addresses(session, by_link=True),
        "by_link": True,
    }
    return render(request, "live/captions.html", context)


@behind_caption_link
def linked_room(request: HttpRequest, link: ShareLink) -> HttpResponse:
    session = link.live_session
    context = room_context(request, session, by_link=True)
    context["reading"] = {**reading_addresses(session, by_link=True), "status": "../status/"}
    return render(request, "live/room.html", context | {"by_link": True})


@behind_caption_link
def linked_status(request: HttpRequest, link: ShareLink) -> HttpResponse:
    return JsonResponse(status_of(link.live_session, recording=None))


urlpatterns = [
    path("s/<slug:token>/", linked_captions, name="linked_captions"),
    path("s/<slug:token>/room/", linked_room, name="linked_room"),
    path("s/<slug:token>/status/", linked_status, name="linked_status"),
]
