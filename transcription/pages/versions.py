"""One version of a recording's transcript: its text, a part at a time, and what it is.

The current one is the recording's own page. Downloads come from `transcription.api.exports`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.http import require_GET

from transcription import selectors
from transcription.errors import NotFoundError
from transcription.languages import language_name
from transcription.models import Recording, TranscriptRevision
from transcription.pages.audience import audience_context
from transcription.pages.paragraphs import Paragraph, paragraphs_of
from transcription.pages.requests import PersonRequest
from transcription.services import speakers, tracks, transcripts
from transcription.templatetags.versions import day_and_time, is_being_written, is_incomplete
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act

PART_SEGMENTS: Final = 1000
"""About an hour and a half of speech. The next part comes when a reader gets to its end."""
MOST_NUMBER: Final = 2**31
"""Above what the column of numbers holds."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a part begins: the index of a segment, of the version or of the draft after it."""

    start: int = 0
    is_tail: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """Whole paragraphs from `place` on; `next` is None where the text ends."""

    place: Place
    paragraphs: list[Paragraph]
    next: Place | None


@login_required
@require_GET
def recording_version(request: PersonRequest, recording_id: UUID, number: int) -> HttpResponse:
    """The page of a version; the current one's is that of the recording."""
    shown = selectors.access_recording_by_id(request.user, recording_id)
    version = _version(shown, number)
    if version.pk == shown.current_revision_id:
        return redirect("recording", shown.id)
    record_act(act=Act.VIEWED, actor=request.user, on=shown)
    context = _text_context(request, shown, version) | {
        "is_owner": shown.owner_id == request.user.pk,
        "written_at": day_and_time(version.created_at),
        "language": language_name(version.language),
        "is_incomplete": is_incomplete(version),
        "is_being_written": is_being_written(version),
        "has_tracks": len(tracks.surveys_of(shown)) > 1,
        **_current_context(shown, version),
        **audience_context(request.user, shown),
    }
    return render(request, "recording/version.html", context)


@login_required
@require_GET
def recording_version_text(request: PersonRequest, recording_id: UUID, number: int) -> HttpResponse:
    """The next part of the text, to append."""
    shown = selectors.access_recording_by_id(request.user, recording_id)
    version = _version(shown, number)
    record_act(act=Act.VIEWED, actor=request.user, on=shown)
    context = _text_context(request, shown, version) | {"is_update": True}
    return render(request, "recording/version_text.html", context)


urlpatterns = [
    path(
        "recordings/<uuid:recording_id>/versions/<int:number>/",
        recording_version,
        name="recording_version",
    ),
    path(
        "recordings/<uuid:recording_id>/versions/<int:number>/text/",
        recording_version_text,
        name="recording_version_text",
    ),
]


def _version(recording: Recording, number: int) -> TranscriptRevision:
    """Raises NotFoundError where this recording has no such version (any more)."""
    revisions = recording.revisions.select_related("job").defer("job__checkpoint")
    version = revisions.filter(number=number).first() if number < MOST_NUMBER else None
    if version is None:
        raise NotFoundError
    return version


def _current_context(shown: Recording, version: TranscriptRevision) -> dict[str, Any]:
    """What the recording shows in the place of `version`, and which of them is older."""
    current = transcripts.current_revision(shown)
    if current is None:
        return {"current": None}
    return {
        "current": current,
        "current_at": day_and_time(current.created_at),
        "is_earlier": version.created_at < current.created_at,
    }


def _text_context(
    request: PersonRequest, shown: Recording, version: TranscriptRevision
) -> dict[str, Any]:
    place = Place(_whole_number(request.GET.get("from", "")), request.GET.get("of") == "draft")
    return {"recording": shown, "version": version, "part": _part(shown, version, place)}


def _part(shown: Recording, version: TranscriptRevision, place: Place) -> Part:
    """At most `PART_SEGMENTS` segments. A refined version that is not complete goes on in what its
    draft has beyond it."""
    segments = transcripts.tail_of(version) if place.is_tail else version.segments.order_by("index")
    rows = list(segments.filter(index__gte=place.start)[: PART_SEGMENTS + 1])
    following = None
    if not place.is_tail and len(rows) <= PART_SEGMENTS and transcripts.tail_of(version).exists():
        following = Place(is_tail=True)
        if not rows:
            return _part(shown, version, following)
    if len(rows) > PART_SEGMENTS:
        following = Place(rows[-1].index, place.is_tail)
    names = speakers.names_of(shown, version)
    paragraphs = list(paragraphs_of(rows[:PART_SEGMENTS], names))
    if len(rows) > PART_SEGMENTS and len(paragraphs) > 1:
        # The last one may go on behind the end of the part: it comes with the next.
        following = Place(paragraphs.pop().lines[0].index, place.is_tail)
    return Part(place, paragraphs, following)


def _whole_number(value: str) -> int:
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else 0
