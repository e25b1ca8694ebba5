"""Home: the two acts, what is live now, and the list of recordings."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Page, Paginator
from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet, Subquery, Value
from django.db.models.functions import Substr
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from transcription import selectors
from transcription.languages import language_choices, language_name
from transcription.models import (
    Job,
    JobState,
    LiveSession,
    LiveState,
    Recording,
    Share,
    TranscriptSegment,
    Upload,
    UploadState,
)
from transcription.pages.paragraphs import joined
from transcription.pages.progress import Progress, progress_of
from transcription.pages.requests import PersonRequest
from transcription.pages.sample import add_sample
from transcription.services.job_options import speaker_choices
from transcription.services.readers import count_readers

RECORDINGS_A_PAGE = 25
LONGEST_QUERY = 200
LINE_CHARACTERS = 300
LINE_SEGMENTS = 6
SHOWN_LIVE_SESSIONS = 50
SHOWN_UPLOADS = 50


@dataclass(frozen=True, slots=True)
class Row:
    """A recording in the list."""

    recording: Recording
    progress: Progress
    line: str
    language: str


@dataclass(frozen=True, slots=True)
class LiveRow:
    """A session that is live now, with about how many read it."""

    session: LiveSession
    readers: int


@login_required
@require_GET
def home(request: PersonRequest) -> HttpResponse:
    """The whole page, or for htmx only its list."""
    query = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST_QUERY]
    page = _page_of_recordings(request, query)
    beginnings = _beginnings(page)
    rows = [_row(recording, beginnings) for recording in page]
    context = {
        "query": query,
        "page": page,
        "rows": rows,
        "live_sessions": _live_now(request),
        "is_moving": any(row.progress.is_open for row in rows),
    }
    if request.headers.get("HX-Request") == "true":
        return render(request, "home/recordings.html", context)
    context |= {
        "uploads": _uploads(request),
        "language_choices": language_choices(can_mix=True),
        "speaker_choices": speaker_choices(),
        "max_upload_bytes": settings.SITE.max_upload_bytes,
    }
    return render(request, "home/home.html", context)


@login_required
@require_POST
def try_sample(request: PersonRequest) -> HttpResponse:
    """Send the sample recording down the same road as an upload."""
    add_sample(request.user)
    messages.success(request, "The sample recording is on its way. Its text appears in a moment.")
    return redirect("home")


def _page_of_recordings(request: PersonRequest, query: str) -> Page[Any]:
    """Recordings with their `open_jobs` and, of a search, the `found` segment's text."""
    recordings = selectors.recordings_visible_to(request.user)
    found: Value | Substr = Value("")
    if query:
        matching = TranscriptSegment.objects.filter(
            revision=OuterRef("current_revision"), text__icontains=query
        )
        first = Subquery(matching.order_by("index").values("text")[:1])
        found = Substr(first, 1, LINE_CHARACTERS)
        recordings = recordings.filter(
            Q(title__icontains=query) | Q(owner__name__icontains=query) | Exists(matching)
        )
    is_shared = Exists(Share.objects.filter(recording=OuterRef("pk"))) | Exists(
        selectors.open_links().filter(recording=OuterRef("pk"))
    )
    recordings = recordings.annotate(found=found, is_shared=is_shared).prefetch_related(
        Prefetch("jobs", queryset=_open_jobs(), to_attr="open_jobs")
    )
    return Paginator(recordings, RECORDINGS_A_PAGE).get_page(request.GET.get("page"))


def _beginnings(page: Page[Any]) -> dict[int, str]:
    """How the shown revisions of a page begin, by revision: one segment may be two words long."""
    revisions = [recording.current_revision_id for recording in page]
    texts: defaultdict[int, list[str]] = defaultdict(list)
    for revision, text in (
        TranscriptSegment.objects.filter(revision__in=revisions, index__lt=LINE_SEGMENTS)
        .order_by("revision", "index")
        .values_list("revision", Substr("text", 1, LINE_CHARACTERS))
    ):
        texts[revision].append(text)
    return {revision: joined(parts)[:LINE_CHARACTERS] for revision, parts in texts.items()}


def _open_jobs() -> QuerySet[Job]:
    return Job.objects.filter(state__in=(JobState.QUEUED, JobState.RUNNING)).defer("checkpoint")


def _row(recording: Any, beginnings: dict[int, str]) -> Row:
    jobs: list[Job] = recording.open_jobs
    return Row(
        recording=recording,
        progress=progress_of(recording, jobs[0] if jobs else None),
        line=recording.found
        or beginnings.get(recording.current_revision_id, "")
        or recording.notice,
        language=language_name(recording.language),
    )


def _live_now(request: PersonRequest) -> list[LiveRow]:
    sessions = selectors.live_sessions_visible_to(request.user).filter(
        state__in=(LiveState.LIVE, LiveState.WAITING)
    )[:SHOWN_LIVE_SESSIONS]
    readers = count_readers([str(session.id) for session in sessions])
    return [LiveRow(*pair) for pair in zip(sessions, readers, strict=True)]


def _uploads(request: PersonRequest) -> QuerySet[Upload]:
    """Uploads that still want something: to go on, to be checked, or to be looked at."""
    return selectors.uploads_of(request.user).exclude(state=UploadState.ACCEPTED)[:SHOWN_UPLOADS]
