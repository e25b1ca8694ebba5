"""REST v1: with whom a recording or a live session is shared."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpResponse
from ninja import Router

from transcription import selectors
from transcription.api.access import WRITES, WRITES_LIVE, ApiRequest
from transcription.api.answers import tagged
from transcription.api.resources.shares import ShareIn, ShareOut, SharesOut
from transcription.api.words import check_key
from transcription.errors import InvalidInputError, NotFoundError
from transcription.models import LiveSession, Recording, Share
from transcription.services import sharing
from webapp.accounts.models import Team, User

of_recordings = Router()
of_live_sessions = Router()


@of_recordings.get("/{recording_id}/shares", auth=WRITES, response={200: SharesOut, 304: None})
def list_recording_shares(request: ApiRequest, recording_id: UUID) -> HttpResponse:
    """With whom your recording is shared."""
    own = selectors.access_own_recording_by_id(request.auth, recording_id)
    return tagged(request, _shares(own))


@of_recordings.post("/{recording_id}/shares", auth=WRITES, response={201: ShareOut})
def share_recording(request: ApiRequest, recording_id: UUID, asked: ShareIn) -> HttpResponse:
    """Share your recording; once it is shared, only the right changes."""
    own = selectors.access_own_recording_by_id(request.auth, recording_id)
    return tagged(request, _share(request.auth, own, asked), status=201)


@of_recordings.delete("/{recording_id}/shares/{share_id}", auth=WRITES, response={204: None})
def stop_sharing_recording(request: ApiRequest, recording_id: UUID, share_id: int) -> HttpResponse:
    """Share it no more: open pages of those who may no longer read close within seconds."""
    own = selectors.access_own_recording_by_id(request.auth, recording_id)
    sharing.stop_sharing(share=_share_of(own, share_id), stopped_by=request.auth)
    return HttpResponse(status=204)


@of_live_sessions.get(
    "/{session_id}/shares", auth=WRITES_LIVE, response={200: SharesOut, 304: None}
)
def list_live_session_shares(request: ApiRequest, session_id: UUID) -> HttpResponse:
    """With whom your live session, and the recording that it becomes, is shared."""
    own = selectors.access_own_live_session_by_id(request.auth, session_id)
    return tagged(request, _shares(own))


@of_live_sessions.post("/{session_id}/shares", auth=WRITES_LIVE, response={201: ShareOut})
def share_live_session(request: ApiRequest, session_id: UUID, asked: ShareIn) -> HttpResponse:
    """Share your live session, and the recording that it becomes."""
    own = selectors.access_own_live_session_by_id(request.auth, session_id)
    return tagged(request, _share(request.auth, own, asked), status=201)


@of_live_sessions.delete("/{session_id}/shares/{share_id}", auth=WRITES_LIVE, response={204: None})
def stop_sharing_live_session(request: ApiRequest, session_id: UUID, share_id: int) -> HttpResponse:
    """Share it no more."""
    own = selectors.access_own_live_session_by_id(request.auth, session_id)
    sharing.stop_sharing(share=_share_of(own, share_id), stopped_by=request.auth)
    return HttpResponse(status=204)


def _shares(thing: Recording | LiveSession) -> SharesOut:
    shares = thing.shares.select_related("person", "team")
    return SharesOut(shares=[ShareOut.of(share) for share in shares])


def _share(sharer: User, thing: Recording | LiveSession, asked: ShareIn) -> ShareOut:
    if (asked.person is None) == (asked.team is None):
        raise InvalidInputError("Name either a `person` or a `team`.")
    with_: User | Team | None
    if asked.person is not None:
        people = selectors.people_to_share_with(sharer)
        with_ = people.filter(email__iexact=asked.person).first()
    else:
        with_ = selectors.teams_to_share_with(sharer).filter(name__iexact=asked.team).first()
    if with_ is None:
        raise InvalidInputError("There is nobody of this name to share it with.")
    share = sharing.share_with(thing=thing, sharer=sharer, with_=with_, can_edit=asked.can_edit)
    return ShareOut.of(share)


def _share_of(thing: Recording | LiveSession, share_id: int) -> Share:
    shares = thing.shares.select_related("person", "team")
    share = shares.filter(id=check_key(share_id)).first()
    if share is None:
        raise NotFoundError
    return share
