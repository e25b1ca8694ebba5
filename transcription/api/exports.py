"""Downloads of a recording's transcript: the one that the page shows, or another revision."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils.http import content_disposition_header

from transcription import selectors
from transcription.api.problems import endpoint
from transcription.api.words import check_key
from transcription.errors import NotFoundError
from transcription.formats import FORMATS, export
from transcription.models import Recording, TranscriptRevision
from transcription.services import speakers, transcripts
from transcription.services.names import clean_display_name
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act, Scope, User


@endpoint("GET", "HEAD", scope=Scope.RECORDINGS_READ)
def recording_export(
    request: HttpRequest, user: User, recording_id: UUID, extension: str
) -> HttpResponse:
    """The transcript in one of `formats.FORMATS`; empty, and valid, where there is none yet."""
    recording = selectors.access_recording_by_id(user, recording_id)
    if extension not in FORMATS:
        raise NotFoundError
    if request.method == "GET":
        record_act(act=Act.EXPORTED, actor=user, on=recording, detail={"format": extension})
    return export_of(recording, extension)


@endpoint("GET", "HEAD", scope=Scope.RECORDINGS_READ)
def recording_version_export(
    request: HttpRequest, user: User, recording_id: UUID, number: int, extension: str
) -> HttpResponse:
    """The same of the revision with this number."""
    recording = selectors.access_recording_by_id(user, recording_id)
    revision = recording.revisions.filter(number=check_key(number)).first()
    if extension not in FORMATS or revision is None:
        raise NotFoundError
    if request.method == "GET":
        record_act(act=Act.EXPORTED, actor=user, on=recording, detail={"format": extension})
    return export_of(recording, extension, revision)


def export_of(
    recording: Recording, extension: str, revision: TranscriptRevision | None = None
) -> HttpResponse:
    """`extension` is one of `formats.FORMATS`; without `revision`, the one that is shown.

    The file of another one says in its name which it is, and has its own language.
    """
    title, language = recording.title, recording.language
    if revision is not None and revision.pk != recording.current_revision_id:
        title = f"{title} ({revision.get_kind_display().lower()}, version {revision.number})"
        language = revision.language or language
    revision = revision or transcripts.current_revision(recording)
    segments = [] if revision is None else transcripts.segments_of(revision)
    text = export(
        extension,
        recording.title,
        segments,
        language=language,
        names=speakers.names_of(recording, revision),
        duration_ms=recording.duration_ms or None,
    )
    response = HttpResponse(text, content_type=FORMATS[extension].media_type)
    # A slash would end up as another sign in each browser, so it is replaced here.
    stem = clean_display_name(title.replace("/", "-").replace("\\", "-"))
    response["Content-Disposition"] = content_disposition_header(
        as_attachment=True, filename=f"{stem}.{extension}"
    )
    response["Cache-Control"] = "private, no-cache"
    response["X-Content-Type-Options"] = "nosniff"
    return response
