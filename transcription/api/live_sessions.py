"""REST v1: live sessions. Audio comes by the streaming socket; captions as they come: see
`live_captions`."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.http import HttpResponse
from django.urls import reverse
from ninja import Query, Router

from transcription import selectors
from transcription.api.access import READS_LIVE, WRITES_LIVE, ApiRequest
from transcription.api.answers import check_unchanged, checks_tag, tagged
from transcription.api.cursors import Page, Paging, newest_first
from transcription.api.repetition import once_by_key
from transcription.api.resources.live_sessions import (
    LiveSessionChange,
    LiveSessionFilter,
    LiveSessionIn,
    LiveSessionOut,
)
from transcription.errors import NotFoundError
from transcription.models import LiveSession, Visibility
from transcription.services import live_sessions, sharing
from transcription.services.names import clean_language

router = Router()


@router.get("", auth=READS_LIVE, response=Page[LiveSessionOut])
def list_live_sessions(
    request: ApiRequest, wanted: Query[LiveSessionFilter], paging: Query[Paging]
) -> Page[LiveSessionOut]:
    """Live sessions that you may read, the newest first."""
    visible = selectors.live_sessions_visible_to(request.auth)
    if wanted.state is not None:
        visible = visible.filter(state=wanted.state)
    if wanted.reference:
        visible = visible.filter(reference=wanted.reference)
    if wanted.owner == "me":
        visible = visible.filter(owner=request.auth)
    elif wanted.owner == "others":
        visible = visible.exclude(owner=request.auth)
    rows, next_cursor = newest_first(visible, paging, by="created_at")
    return Page(items=[LiveSessionOut.of(row) for row in rows], next_cursor=next_cursor)


@router.post("", auth=WRITES_LIVE, response={201: LiveSessionOut})
@once_by_key()
def create_live_session(request: ApiRequest, asked: LiveSessionIn) -> HttpResponse:
    """Make a session; its audio comes by `/ws/v1/stream`, or from the page of its owner."""
    session = live_sessions.create_live_session(
        owner=request.auth,
        title=asked.title,
        reference=asked.reference,
        language=clean_language(asked.language),
        mode_ms=asked.mode_ms,
        visibility=asked.visibility,
    )
    location = reverse("api-v1:read_live_session", args=[session.id])
    return tagged(request, LiveSessionOut.of(session), status=201, location=location)


@router.get("/{session_id}", auth=READS_LIVE, response={200: LiveSessionOut, 304: None})
def read_live_session(request: ApiRequest, session_id: UUID) -> HttpResponse:
    """One live session."""
    session = selectors.access_live_session_by_id(request.auth, session_id)
    return tagged(request, LiveSessionOut.of(session))


@router.patch("/{session_id}", auth=WRITES_LIVE, response=LiveSessionOut)
@checks_tag
def change_live_session(
    request: ApiRequest, session_id: UUID, change: LiveSessionChange
) -> HttpResponse:
    """Say who may read the captions of your session."""
    with transaction.atomic():
        session = _held(selectors.access_own_live_session_by_id(request.auth, session_id))
        check_unchanged(request, LiveSessionOut.of(session))
        sharing.set_audience(
            thing=session,
            is_organisation_wide=change.visibility == Visibility.ORGANISATION,
            set_by=request.auth,
        )
    return tagged(request, LiveSessionOut.of(session))


@router.post("/{session_id}/end", auth=WRITES_LIVE, response=LiveSessionOut)
def end_live_session(request: ApiRequest, session_id: UUID) -> HttpResponse:
    """No more audio will come. It is completed within moments, and becomes a recording."""
    own = selectors.access_own_live_session_by_id(request.auth, session_id)
    return tagged(request, LiveSessionOut.of(live_sessions.end_live_session(session=own)))


def _held(session: LiveSession) -> LiveSession:
    """As it is now, and changed by nobody else until the transaction ends."""
    held = (
        LiveSession.objects.select_for_update(of=("self",))
        .select_related("owner")
        .filter(id=session.id)
        .first()
    )
    if held is None:
        raise NotFoundError
    return held
