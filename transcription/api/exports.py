"""Downloads of a recording's transcript: always the revision that the page shows."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils.http import content_disposition_header

from transcription import selectors
from transcription.api.problems import endpoint
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


def export_of(
    recording: Recording, extension: str, revision: TranscriptRevision | None = None
) -> HttpResponse:
    """`extension` is one of `formats.FORMATS`; without `revision`, the one that is shown."""
    revision = revision or transcripts.current_revision(recording)
    segments = [] if revision is None else transcripts.segments_of(revision)
    text = export(
        extension,
        recording.title,
        segments,
        language=recording.language,
        names=speakers.names_of(recording, revision),
        duration_ms=recording.duration_ms or None,
    )
    response = HttpResponse(text, content_type=FORMATS[extension].media_type)
    # A slash would end up as another sign in each browser, so it is replaced here.
    stem = clean_display_name(recording.title.replace("/", "-").replace("\\", "-"))
    response["Content-Disposition"] = content_disposition_header(
        as_attachment=True, filename=f"{stem}.{extension}"
    )
    response["Cache-Control"] = "private, no-cache"
    response["X-Content-Type-Options"] = "nosniff"
    return response
