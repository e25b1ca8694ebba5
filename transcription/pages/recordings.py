"""The page of one recording, its fragments, and what its owner and its editors may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from transcription import selectors
from transcription.errors import InvalidInputError, NotFoundError
from transcription.languages import (
    CHINESE,
    MIXED,
    MIXED_NAME,
    language_choices,
    language_name,
)
from transcription.models import (
    ChineseScript,
    Job,
    JobState,
    Recording,
    RecordingState,
    TranscriptRevision,
    TranscriptSegment,
)
from transcription.pages.audience import audience_context
from transcription.pages.forms import JobOptionsForm, RenameForm
from transcription.pages.keeping import keeping_of
from transcription.pages.paragraphs import Paragraph, paragraphs_of
from transcription.pages.progress import progress_of
from transcription.pages.requests import PersonRequest
from transcription.pages.speakers import speaker_lines
from transcription.pages.tracks import track_notes
from transcription.services import job_queue, jobs, recordings, speakers, tracks, transcripts
from transcription.services.job_options import COUNT_SPEAKERS, read_options, speaker_choices
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act


@dataclass(frozen=True, slots=True)
class Tail:
    """Draft text that stands after the refined one. Two tails of one `name` are the same."""

    name: str
    paragraphs: list[Paragraph]


@login_required
@require_GET
def recording(request: PersonRequest, recording_id: UUID) -> HttpResponse:
    """Player, transcript, progress while it runs, and what this person may do."""
    try:
        shown = selectors.access_recording_by_id(request.user, recording_id)
    except NotFoundError:
        # An administrator may say why they need it; to everybody else this is 404 as well.
        selectors.access_administered_recording_by_id(request.user, recording_id)
        return redirect("recordings_open", recording_id)
    record_act(act=Act.VIEWED, actor=request.user, on=shown)
    revision, names = transcripts.current_revision(shown), speakers.names_of(shown)
    context = _status_context(request, shown) | {
        "revision": revision,
        "paragraphs": paragraphs_of(segments_of(revision), names),
        "tail": tail_of(revision, names),
        "details": _details(shown, revision),
        "keeping": keeping_of(shown, request.user),
        "speaker_lines": speaker_lines(shown, revision),
        **_options_again(shown),
        **audience_context(request.user, shown),
    }
    return render(request, "recording/recording.html", context)


@login_required
@require_GET
def recording_status(request: PersonRequest, recording_id: UUID) -> HttpResponse:
    """The line of progress; when what is `shown` is out of date, tools and details with it."""
    shown = selectors.access_recording_by_id(request.user, recording_id)
    context = _status_context(request, shown)
    if request.GET.get("shown") != context["shown"]:
        revision = transcripts.current_revision(shown)
        context |= {
            "has_changed": True,
            "revision": revision,
            "details": _details(shown, revision),
            "keeping": keeping_of(shown, request.user),
            "speaker_lines": speaker_lines(shown, revision),
        }
    return render(request, "recording/status.html", context)


@login_required
@require_GET
def recording_transcript(request: PersonRequest, recording_id: UUID) -> HttpResponse:
    """Segments after `after` of revision `revision`, to append; all, if the revision is another.

    With them the tail, where it is another than `tail`.
    """
    shown = selectors.access_recording_by_id(request.user, recording_id)
    revision, names = transcripts.current_revision(shown), speakers.names_of(shown)
    segments, tail = segments_of(revision), tail_of(revision, names)
    known, after = _whole_number(request, "revision"), _whole_number(request, "after")
    is_growing = revision is not None and known == revision.number and after is not None
    if is_growing:
        segments = segments.filter(index__gt=after)
    listed = list(segments)
    if is_growing and not listed and request.GET.get("tail") == tail.name:
        return HttpResponse(status=204)
    record_act(act=Act.VIEWED, actor=request.user, on=shown)
    context = {"revision": revision, "paragraphs": paragraphs_of(listed, names), "tail": tail}
    response = render(request, "recording/growth.html", context)
    response["HX-Reswap"] = "beforeend" if is_growing else "innerHTML"
    return response


@login_required
@require_POST
def recording_rename(request: PersonRequest, recording_id: UUID) -> HttpResponse:
    editable = selectors.access_editable_recording_by_id(request.user, recording_id)
    form = RenameForm(request.POST)
    if not form.is_valid():
        raise InvalidInputError("A title has between 1 and 300 characters. Nothing was changed.")
    title = form.cleaned_data["title"]
    recordings.rename_recording(recording=editable, title=title, renamed_by=request.user)
    messages.success(request, "The new title is saved.")
    return redirect("recording", editable.id)


@login_required
@require_POST
def recording_cancel(request: PersonRequest, recording_id: UUID) -> HttpResponse:
    editable = selectors.access_editable_recording_by_id(request.user, recording_id)
    job = _open_job(editable)
    if job is not None:
        jobs.cancel_job(job=job, cancelled_by=request.user)
        messages.success(request, "The transcription stops. The text that is here stays.")
    return redirect("recording", editable.id)


@login_required
@require_POST
def recording_retry(request: PersonRequest, recording_id: UUID) -> HttpResponse:
    """Transcribe again from the start, as it was asked for or, with a language, otherwise."""
    editable = selectors.access_editable_recording_by_id(request.user, recording_id)
    form = JobOptionsForm(request.POST)
    if not form.is_valid():
        raise InvalidInputError("This language is not known here. Nothing was changed.")
    options = None
    if "language" in request.POST:
        asked = read_options(**form.cleaned_data)
        options = jobs.options_again(recording=editable, asked=asked, given=request.POST)
    jobs.retry_job(recording=editable, requested_by=request.user, options=options)
    messages.success(request, "The recording is waiting to be transcribed again.")
    return redirect("recording", editable.id)


def _status_context(request: PersonRequest, shown: Recording) -> dict[str, Any]:
    job = _open_job(shown)
    place = job_queue.queue_position(job=job) if job and job.state == JobState.QUEUED else None
    notes = track_notes(shown)
    coming = job.track if job and notes and job.track != notes.taken else None
    state = f"{shown.state}{job.stage if job else ''}"
    return {
        "recording": shown,
        "shown": f"{state}.{shown.current_revision_id or 0}.{shown.player_name}",
        "progress": progress_of(shown, job, place),
        "is_owner": shown.owner_id == request.user.pk,
        "can_edit": selectors.can_edit_recording(request.user, shown),
        "can_cancel": job is not None and not job.is_cancel_requested,
        "is_attention": shown.state == RecordingState.ATTENTION,
        "track_notes": notes,
        "coming_track": None if coming is None else coming + 1,
        "needs_player": tracks.needs_player(shown),
    }


def _options_again(shown: Recording) -> dict[str, Any]:
    """What the dialog offers, with what was asked for the last time."""
    spoken = shown.language or shown.requested_language
    count = str(shown.speaker_count or COUNT_SPEAKERS)
    return {
        "language_choices": language_choices(can_mix=True),
        "asked_language": MIXED if shown.mixes_languages else shown.requested_language,
        "may_be_chinese": spoken in CHINESE or shown.mixes_languages or shown.chinese_script,
        "script_choices": ChineseScript.choices,
        "speaker_choices": speaker_choices(),
        "asked_speakers": count if shown.finds_speakers else "",
    }


def _open_job(shown: Recording) -> Job | None:
    return (
        shown.jobs.filter(state__in=(JobState.QUEUED, JobState.RUNNING)).defer("checkpoint").first()
    )


def segments_of(revision: TranscriptRevision | None) -> QuerySet[TranscriptSegment]:
    if revision is None:
        return TranscriptSegment.objects.none()
    return revision.segments.order_by("index")


def tail_of(revision: TranscriptRevision | None, names: Mapping[str, str]) -> Tail:
    segments = list(transcripts.tail_of(revision))
    name = f"{segments[0].pk}.{segments[-1].pk}" if segments else ""
    return Tail(name, list(paragraphs_of(segments, names)))


def _whole_number(request: PersonRequest, name: str) -> int | None:
    value = request.GET.get(name, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else None


def _details(shown: Recording, revision: TranscriptRevision | None) -> list[tuple[str, str]]:
    """Facts worth knowing, as pairs of words; what is not known is left out."""
    language = language_name(shown.language or shown.requested_language)
    was_chosen = shown.requested_language or (revision and revision.job and revision.job.language)
    if shown.mixes_languages:
        language = f"{MIXED_NAME} (mostly {language})" if language else MIXED_NAME
    elif language and not was_chosen and shown.language_confidence is not None:
        language += f" (detected, {round(shown.language_confidence * 100)} % sure)"
    facts = [
        ("Language", language),
        ("Model", revision.model_name if revision else ""),
        ("Format", _format(shown)),
        ("File name", shown.display_name),
    ]
    return [(name, value) for name, value in facts if value]


def _format(shown: Recording) -> str:
    """Container and codec in capitals; one word where both are called the same."""
    return " · ".join(
        dict.fromkeys(part.upper() for part in (shown.container, shown.codec) if part)
    )
