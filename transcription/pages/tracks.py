"""What the page of a recording says of its audio tracks, and the choice of another one."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.views.decorators.http import require_POST

from asr_engine.tracks import CHANNEL_LABELS, ChannelMode, ChannelPlan, TrackSurvey
from transcription import selectors
from transcription.errors import InvalidInputError
from transcription.models import Recording
from transcription.pages.requests import PersonRequest
from transcription.services import tracks

UNKNOWN_LANGUAGE = "und"
"""ISO 639's code that files state where nobody knows."""
CHANNELS = {
    ChannelMode.EACH: "The two channels carry different voices, so each is written down on its own,"
    " as Left and Right.",
    ChannelMode.LEFT: "Nobody speaks in the right channel, so only the left one is heard.",
    ChannelMode.RIGHT: "Nobody speaks in the left channel, so only the right one is heard.",
}

SELDOM = (
    "Hardly anybody was heard in the {channel} channel where it was listened to."
    " Lest words be lost, each channel is written down on its own, as Left and Right."
)


@dataclass(frozen=True, slots=True)
class TrackNotes:
    """`sentences` for everybody, and the `choices` (index, words) of who may edit, `taken` the one
    that is transcribed.
    """

    sentences: list[str]
    choices: list[tuple[int, str]]
    taken: int | None


def track_notes(recording: Recording) -> TrackNotes | None:
    """None where the recording has nothing that a reader should know."""
    surveys = tracks.surveys_of(recording)
    plan = tracks.plan_for(recording)
    sentences = []
    if len(surveys) > 1:
        sentences.append(_which(surveys, plan, is_chosen=recording.track is not None))
    if plan.mode in CHANNELS:
        sentences.append(_how(surveys, plan))
    if not sentences:
        return None
    choices = [(survey.index, _name(survey)) for survey in surveys] if len(surveys) > 1 else []
    return TrackNotes(sentences, choices, plan.track)


@login_required
@require_POST
def recording_track(request: PersonRequest, recording_id: UUID) -> HttpResponse:
    """Transcribe another track."""
    editable = selectors.access_editable_recording_by_id(request.user, recording_id)
    chosen = request.POST.get("track", "")
    if not (chosen.isascii() and chosen.isdigit() and len(chosen) < 4):
        raise InvalidInputError
    tracks.choose_track(recording=editable, track=int(chosen), requested_by=request.user)
    messages.success(
        request,
        f"Track {int(chosen) + 1} is waiting to be transcribed. The player changes to it once its "
        "text is there.",
    )
    return redirect("recording", editable.id)


urlpatterns = [
    path("recordings/<uuid:recording_id>/track/", recording_track, name="recording_track"),
]


def _which(surveys: list[TrackSurvey], plan: ChannelPlan, *, is_chosen: bool) -> str:
    number = 0 if plan.track is None else plan.track + 1
    count = f"This recording has {len(surveys)} audio tracks."
    passed = next((survey for survey in surveys if survey.is_default), None)
    if is_chosen or passed is None or passed.index == plan.track:
        return f"{count} Track {number} is transcribed."
    why = "is silent" if passed.is_silent else "has no speech"
    return f"{count} Track {passed.index + 1} {why}, so track {number} is transcribed."


def _how(surveys: list[TrackSurvey], plan: ChannelPlan) -> str:
    survey = next(survey for survey in surveys if survey.index == plan.track)
    if plan.mode is ChannelMode.EACH and not survey.are_channels_different:
        return SELDOM.format(channel=CHANNEL_LABELS[survey.seldom_channel or 0])
    return CHANNELS[plan.mode]


def _name(survey: TrackSurvey) -> str:
    """“Track 2 · Interpreter · eng · no speech heard”."""
    language = "" if survey.language == UNKNOWN_LANGUAGE else survey.language
    heard = "" if survey.has_speech else "silent" if survey.is_silent else "no speech heard"
    known = (f"Track {survey.index + 1}", survey.title, language, heard)
    return " · ".join(part for part in known if part)
