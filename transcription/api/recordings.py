"""REST v1: recordings, from their first bytes to the trash."""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import UUID

from django.db import transaction
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from ninja import File, Form, Query, Router
from ninja.files import UploadedFile
from pydantic import Field

from transcription import selectors
from transcription.api import media
from transcription.api.access import READS, WRITES, ApiRequest
from transcription.api.answers import check_unchanged, checks_tag, tagged
from transcription.api.cursors import Page, Paging, newest_first
from transcription.api.repetition import once_by_key
from transcription.api.resources.recordings import (
    OptionsIn,
    RecordingChange,
    RecordingFilter,
    RecordingOut,
)
from transcription.api.resources.uploads import UploadOut
from transcription.api.words import MOST_KEY, Line
from transcription.errors import InvalidInputError, NotFoundError
from transcription.models import Recording
from transcription.services import intake_folder, recordings, retention, sharing, trash, uploads
from webapp.accounts.models import Team, User

router = Router()

MEDIA: Final[dict[str, Any]] = {
    "parameters": [
        {
            "in": "header",
            "name": "Range",
            "required": False,
            "schema": {"type": "string", "pattern": "^bytes=[0-9]*-[0-9]*$"},
            "description": "One range of bytes.",
        }
    ],
    "responses": {
        status: {"description": description, "content": {"audio/*": {"schema": {}}}}
        for status, description in ((200, "All of it."), (206, "The part asked for."))
    }
    | {304: {"description": "You have it already."}},
}


class NewRecording(OptionsIn):
    """The recording is the form's `file`, or a file of the server named by its `path`."""

    # A form has words alone.
    draft_only: Annotated[bool, Field(description="Without the second pass.")] = False
    path: Annotated[
        Line,
        Field(
            max_length=4096,
            description="Absolute, beneath a folder that the administrator has listed.",
        ),
    ] = ""


@router.get("", auth=READS, response=Page[RecordingOut])
def list_recordings(
    request: ApiRequest, wanted: Query[RecordingFilter], paging: Query[Paging]
) -> Page[RecordingOut]:
    """Recordings that you may read, the newest first."""
    visible = selectors.recordings_visible_to(request.auth).select_related("current_revision")
    rows, next_cursor = newest_first(wanted.among(visible, request.auth), paging, by="created_at")
    return Page(items=[RecordingOut.of(row) for row in rows], next_cursor=next_cursor)


@router.post("", auth=WRITES, response={202: UploadOut})
@once_by_key(in_one_transaction=False)
def create_recording(
    request: ApiRequest,
    asked: Form[NewRecording],
    file: File[UploadedFile | None] = None,
) -> HttpResponse:
    """Hand in a small recording as the `file` of a form, or name one of the server by its `path`.

    It is checked first: the answer is the upload, whose state tells when it has become a recording
    (with the same id), or why it was refused. What is larger than 16 MB comes by tus
    (`/api/v1/uploads/`).
    """
    if (file is None) == (not asked.path):
        raise InvalidInputError("Send either a `file` or the `path` of one.")
    options = asked.read()
    if file is None:
        upload = intake_folder.create_upload_of_path(
            owner=request.auth, path=asked.path, options=options
        )
    else:
        upload = uploads.create_upload(
            owner=request.auth,
            display_name=file.name or "",
            length_bytes=file.size or 0,
            options=options,
        )
        upload = uploads.append_upload(upload=upload, offset_bytes=0, chunks=file.chunks())
    location = reverse("api_upload", args=[upload.id])
    return tagged(request, UploadOut.of(upload), status=202, location=location)


@router.get("/trash", auth=READS, response=Page[RecordingOut])
def list_trash(request: ApiRequest, paging: Query[Paging]) -> Page[RecordingOut]:
    """What of your own lies in the trash, what came there last first."""
    trashed = selectors.trashed_recordings_of(request.auth).select_related("current_revision")
    rows, next_cursor = newest_first(trashed, paging, by="trashed_at")
    return Page(items=[RecordingOut.of(row) for row in rows], next_cursor=next_cursor)


@router.get("/{recording_id}", auth=READS, response={200: RecordingOut, 304: None})
def read_recording(request: ApiRequest, recording_id: UUID) -> HttpResponse:
    """One recording."""
    recording = selectors.access_recording_by_id(request.auth, recording_id)
    return tagged(request, RecordingOut.of(recording))


@router.patch("/{recording_id}", auth=WRITES, response=RecordingOut)
@checks_tag
def change_recording(
    request: ApiRequest, recording_id: UUID, change: RecordingChange
) -> HttpResponse:
    """Change its title (editors too), or who may read it and how long it is kept (its owner)."""
    asked = change.model_fields_set
    with transaction.atomic():
        if asked <= {"title"}:
            recording = selectors.access_editable_recording_by_id(request.auth, recording_id)
        else:
            recording = selectors.access_own_recording_by_id(request.auth, recording_id)
        recording = _held(recording)
        check_unchanged(request, RecordingOut.of(recording))
        _change(recording, change, request.auth)
    return tagged(request, RecordingOut.of(recording))


@router.delete("/{recording_id}", auth=WRITES, response={204: None})
@checks_tag
def delete_recording(request: ApiRequest, recording_id: UUID) -> HttpResponse:
    """Move your recording to the trash."""
    with transaction.atomic():
        recording = selectors.access_own_recording_by_id(request.auth, recording_id)
        recording = _held(recording)
        check_unchanged(request, RecordingOut.of(recording))
        trash.trash_recording(recording=recording, trashed_by=request.auth)
    return HttpResponse(status=204)


@router.post("/{recording_id}/restore", auth=WRITES, response=RecordingOut)
def restore_recording(request: ApiRequest, recording_id: UUID) -> HttpResponse:
    """Take your recording out of the trash again."""
    trashed = selectors.access_trashed_recording_by_id(request.auth, recording_id)
    restored = trash.restore_recording(recording=trashed, restored_by=request.auth)
    return tagged(request, RecordingOut.of(restored))


@router.api_operation(["HEAD"], "/{recording_id}/media", auth=READS, include_in_schema=False)
@router.get("/{recording_id}/media", auth=READS, openapi_extra=MEDIA)
def read_media(request: ApiRequest, recording_id: UUID) -> HttpResponseBase:
    """The audio, as the page plays it; ranges of bytes may be asked for."""
    return media.recording_media(request, recording_id=recording_id)


def _held(recording: Recording) -> Recording:
    """As it is now, and changed by nobody else until the transaction ends."""
    held = (
        Recording.objects.select_for_update(of=("self",))
        .select_related("owner", "current_revision")
        .filter(id=recording.id)
        .first()
    )
    if held is None:
        raise NotFoundError
    return held


def _change(recording: Recording, change: RecordingChange, user: User) -> None:
    asked = change.model_fields_set
    if change.title is not None:
        recordings.rename_recording(recording=recording, title=change.title, renamed_by=user)
    if change.is_organisation_wide is not None:
        sharing.set_audience(
            thing=recording, is_organisation_wide=change.is_organisation_wide, set_by=user
        )
    if "team" in asked:
        team = None if change.team is None else _own_team(user, change.team)
        retention.set_team(recording=recording, team=team, changed_by=user)
    if "expires_at" in asked:
        retention.set_expiry(recording=recording, expires_at=change.expires_at, changed_by=user)


def _own_team(user: User, team_id: int) -> Team:
    team = user.teams.filter(id=team_id).first() if 0 < team_id < MOST_KEY else None
    if team is None:
        raise InvalidInputError("Choose one of your own teams. Nothing was changed.")
    return team
