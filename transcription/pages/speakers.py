"""Who speaks in a recording, and what they are called."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.views.decorators.http import require_POST

from transcription import selectors
from transcription.errors import InvalidInputError
from transcription.formats.speakers import shown_name
from transcription.models import Recording, TranscriptRevision
from transcription.pages.paragraphs import NOBODY, hue_of
from transcription.pages.requests import PersonRequest
from transcription.services import speakers


@dataclass(frozen=True, slots=True)
class SpeakerLine:
    """A speaker as the form shows one; `usual_name` is what is read where `name` is empty."""

    label: str
    usual_name: str
    name: str
    hue: int
    spoken_ms: int


def speaker_lines(recording: Recording, revision: TranscriptRevision | None) -> list[SpeakerLine]:
    """Empty where speakers were not told apart."""
    all_heard = speakers.heard_in(revision)
    names = speakers.names_of(recording) if all_heard else NOBODY
    return [
        SpeakerLine(
            heard.label,
            shown_name(heard.label, NOBODY),
            names.get(heard.label, ""),
            hue_of(heard.label),
            heard.spoken_ms,
        )
        for heard in all_heard
    ]


@login_required
@require_POST
def recording_speakers(request: PersonRequest, recording_id: UUID) -> HttpResponse:
    """Name the speakers: as many `label` as `name`, in the same order."""
    editable = selectors.access_editable_recording_by_id(request.user, recording_id)
    labels, names = request.POST.getlist("label"), request.POST.getlist("name")
    if len(labels) != len(names):
        raise InvalidInputError
    called = dict(zip(labels, names, strict=True))
    speakers.name_speakers(recording=editable, names=called, named_by=request.user)
    messages.success(request, "The names are saved. Downloads have them too.")
    return redirect("recording", editable.id)


urlpatterns = [
    path("recordings/<uuid:recording_id>/speakers/", recording_speakers, name="recording_speakers"),
]
