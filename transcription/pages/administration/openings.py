"""Opening what is somebody else's: an administrator says why, reads it for an hour, and the owner
sees that it happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from transcription import selectors
from transcription.errors import InvalidInputError, NotFoundError
from transcription.models import LiveSession, Recording
from transcription.pages.administration import administrators_only
from transcription.pages.requests import PersonRequest
from transcription.services import sharing

Thing = Recording | LiveSession

KINDS: Final[dict[str, tuple[Callable[..., Thing], Callable[..., Thing], str]]] = {
    "recordings": (
        selectors.access_administered_recording_by_id,
        selectors.access_recording_by_id,
        "recording",
    ),
    "live": (
        selectors.access_administered_live_session_by_id,
        selectors.access_live_session_by_id,
        "live_captions",
    ),
}
"""By a part of the address: how an administrator sees that it exists, how anybody reads it, and the
name of its page."""


@administrators_only
@never_cache
@require_http_methods(["GET", "POST"])
def open_page(request: PersonRequest, kind: str, thing_id: UUID) -> HttpResponse:
    """What it is, without a word of it, and the question why."""
    administered, read, page = KINDS[kind]
    thing = administered(request.user, thing_id)
    if isinstance(thing, Recording) and thing.trashed_at is not None:
        raise NotFoundError("It lies in its owner's trash, where nobody reads it.")
    if _reads_already(request, read, thing_id):
        return redirect(page, thing_id)
    problem = ""
    if request.method == "POST":
        try:
            sharing.open_as_administrator(
                thing=thing, administrator=request.user, reason=request.POST.get("reason", "")
            )
        except InvalidInputError as error:
            problem = error.text
        else:
            return redirect(page, thing_id)
    context = {
        "kind": kind,
        "thing": thing,
        "is_live": isinstance(thing, LiveSession),
        "problem": problem,
        "reason": request.POST.get("reason", "")[: sharing.MAX_REASON_CHARACTERS],
        "longest": sharing.MAX_REASON_CHARACTERS,
        "minutes": int(sharing.OPENED_FOR.total_seconds() // 60),
    }
    return render(request, "administration/open.html", context, status=400 if problem else 200)


@administrators_only
@require_POST
def close_page(request: PersonRequest, kind: str, thing_id: UUID) -> HttpResponse:
    administered, _, _ = KINDS[kind]
    thing = administered(request.user, thing_id)
    sharing.close_opened(thing=thing, administrator=request.user)
    messages.success(request, f"“{thing.title}” is closed. That you had opened it stays on record.")
    return redirect("administration")


def _reads_already(request: PersonRequest, read: Callable[..., Thing], thing_id: UUID) -> bool:
    try:
        read(request.user, thing_id)
    except NotFoundError:
        return False
    return True


urlpatterns = [
    *(
        path(f"open/{kind}/<uuid:thing_id>/", open_page, {"kind": kind}, name=f"{kind}_open")
        for kind in KINDS
    ),
    *(
        path(
            f"open/{kind}/<uuid:thing_id>/close/", close_page, {"kind": kind}, name=f"{kind}_close"
        )
        for kind in KINDS
    ),
]
