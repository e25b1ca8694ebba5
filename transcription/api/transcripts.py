"""REST v1: what was said in a recording, in every revision and every format."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.http import HttpResponse
from ninja import Query, Router

from transcription import selectors
from transcription.api import exports
from transcription.api.access import READS, WRITES, ApiRequest
from transcription.api.answers import check_unchanged, checks_tag, tagged
from transcription.api.cursors import Page, Paging, in_order
from transcription.api.resources.transcripts import (
    RevisionOut,
    SegmentOut,
    SpeakerOut,
    SpeakersChange,
    SpeakersOut,
)
from transcription.api.words import check_key
from transcription.errors import NotFoundError
from transcription.formats import FORMATS
from transcription.formats.speakers import shown_name
from transcription.models import Recording, TranscriptRevision
from transcription.services import speakers, transcripts
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act, User

router = Router()

EXPORTS = {
    "responses": {
        200: {
            "description": "The transcript, in the format that the address names.",
            "content": {
                entry.media_type.partition(";")[0]: {"schema": {"type": "string"}}
                for entry in FORMATS.values()
            },
        }
    }
}


@router.get("/{recording_id}/transcript.{extension}", auth=READS, openapi_extra=EXPORTS)
def download_transcript(request: ApiRequest, recording_id: UUID, extension: str) -> HttpResponse:
    """The transcript that is shown, as a file; empty, and valid, while there is none."""
    recording = selectors.access_recording_by_id(request.auth, recording_id)
    return _download(request.auth, recording, extension)


@router.get("/{recording_id}/revisions", auth=READS, response=Page[RevisionOut])
def list_revisions(
    request: ApiRequest, recording_id: UUID, paging: Query[Paging]
) -> Page[RevisionOut]:
    """Every revision of the transcript, the first one first."""
    recording = selectors.access_recording_by_id(request.auth, recording_id)
    rows, next_cursor = in_order(recording.revisions.all(), paging, by="number")
    shown = recording.current_revision_id
    return Page(items=[RevisionOut.of(row, shown=shown) for row in rows], next_cursor=next_cursor)


@router.get(
    "/{recording_id}/revisions/{number}", auth=READS, response={200: RevisionOut, 304: None}
)
def read_revision(request: ApiRequest, recording_id: UUID, number: int) -> HttpResponse:
    """One revision, without its text."""
    recording = selectors.access_recording_by_id(request.auth, recording_id)
    revision = _revision(recording, number)
    return tagged(request, RevisionOut.of(revision, shown=recording.current_revision_id))


@router.get("/{recording_id}/revisions/{number}/segments", auth=READS, response=Page[SegmentOut])
def list_segments(
    request: ApiRequest, recording_id: UUID, number: int, paging: Query[Paging]
) -> Page[SegmentOut]:
    """The text of a revision with its words, from the beginning."""
    recording = selectors.access_recording_by_id(request.auth, recording_id)
    revision = _revision(recording, number)
    rows, next_cursor = in_order(revision.segments.all(), paging, by="index")
    names = speakers.names_of(recording, revision)
    record_act(act=Act.VIEWED, actor=request.auth, on=recording)
    return Page(
        items=[SegmentOut.of(row, language=revision.language, names=names) for row in rows],
        next_cursor=next_cursor,
    )


@router.get(
    "/{recording_id}/revisions/{number}/transcript.{extension}",
    auth=READS,
    openapi_extra=EXPORTS,
)
def download_revision(
    request: ApiRequest, recording_id: UUID, number: int, extension: str
) -> HttpResponse:
    """One revision as a file."""
    recording = selectors.access_recording_by_id(request.auth, recording_id)
    return _download(request.auth, recording, extension, _revision(recording, number))


@router.get("/{recording_id}/speakers", auth=READS, response={200: SpeakersOut, 304: None})
def list_speakers(request: ApiRequest, recording_id: UUID) -> HttpResponse:
    """Who speaks in the transcript that is shown."""
    return tagged(request, _speakers(selectors.access_recording_by_id(request.auth, recording_id)))


@router.patch("/{recording_id}/speakers", auth=WRITES, response=SpeakersOut)
@checks_tag
def name_speakers(request: ApiRequest, recording_id: UUID, change: SpeakersChange) -> HttpResponse:
    """Give speakers names, or take them away."""
    with transaction.atomic():
        recording = selectors.access_editable_recording_by_id(request.auth, recording_id)
        check_unchanged(request, _speakers(recording))
        speakers.name_speakers(recording=recording, names=change.names, named_by=request.auth)
    return tagged(request, _speakers(recording))


def _revision(recording: Recording, number: int) -> TranscriptRevision:
    revision = recording.revisions.filter(number=check_key(number)).first()
    if revision is None:
        raise NotFoundError
    return revision


def _download(
    user: User, recording: Recording, extension: str, revision: TranscriptRevision | None = None
) -> HttpResponse:
    if extension not in FORMATS:
        raise NotFoundError
    record_act(act=Act.EXPORTED, actor=user, on=recording, detail={"format": extension})
    return exports.export_of(recording, extension, revision)


def _speakers(recording: Recording) -> SpeakersOut:
    names = speakers.names_of(recording)
    heard = speakers.heard_in(transcripts.current_revision(recording))
    return SpeakersOut(
        speakers=[
            SpeakerOut(label=one.label, name=shown_name(one.label, names), spoken_ms=one.spoken_ms)
            for one in heard
        ]
    )
