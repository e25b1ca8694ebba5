"""The captions of a live session as plain text and WebVTT, for OBS and the like.

By a person's cookie or token, or by a link to the captions (`/s/<token>/captions.txt`). Whoever
polls sends the ETag back and gets 304 as long as nothing new was said.
"""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import get_conditional_response
from django.views.decorators.http import require_safe

from transcription import selectors
from transcription.api.allowances import count_request, tell_allowance
from transcription.api.problems import endpoint
from transcription.errors import InvalidInputError, ProductError
from transcription.models import LiveSession
from transcription.services import rate_limits
from transcription.services.caption_text import MAX_LINES, MEDIA_TYPES, write_caption_text
from transcription.services.share_links import open_caption_link
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act, Scope, User


@endpoint("GET", "HEAD", scope=Scope.LIVE_READ)
def live_caption_text(
    request: HttpRequest, user: User, session_id: UUID, extension: str
) -> HttpResponseBase:
    session = selectors.access_live_session_by_id(user, session_id)
    response = _answer(request, session, extension)
    if response.status_code == 200:  # who polls learns nothing by a 304
        record_act(act=Act.VIEWED, actor=user, on=session)
    return response


@require_safe
def linked_caption_text(request: HttpRequest, token: str, extension: str) -> HttpResponseBase:
    """A refusal is one sentence, which a player shows instead of captions."""
    address = request.META.get("REMOTE_ADDR", "")
    try:
        count_request(request, rate_limits.address(address), rate_limits.Kind.LINKED_FILE)
        link = open_caption_link(token=token, address=address)
        response: HttpResponseBase = _answer(request, link.live_session, extension)
    except ProductError as error:
        response = HttpResponse(
            f"{error.text}\n", content_type="text/plain; charset=utf-8", status=error.status
        )
        response["Cache-Control"] = "no-store"
    tell_allowance(request, response)
    response["Referrer-Policy"] = "no-referrer"
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response


def _answer(request: HttpRequest, session: LiveSession, extension: str) -> HttpResponseBase:
    lines = _lines(request)
    etag = f'"{session.last_seq}.{extension}.{lines}"'
    response: HttpResponseBase | None = get_conditional_response(request, etag=etag)
    if response is None:
        text = write_caption_text(session=session, extension=extension, lines=lines)
        response = HttpResponse(text, content_type=MEDIA_TYPES[extension])
    response["ETag"] = etag
    response["Cache-Control"] = "private, no-cache"
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _lines(request: HttpRequest) -> int:
    value = request.GET.get("lines", "0")
    lines = int(value) if value.isascii() and value.isdigit() and len(value) < 10 else -1
    if not 0 <= lines <= MAX_LINES:
        raise InvalidInputError(f"lines must be a whole number up to {MAX_LINES}, or 0 for all.")
    return lines
