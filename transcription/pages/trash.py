"""The trash: what its owner may still restore, or delete for ever."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Page, Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from transcription import selectors
from transcription.errors import ConflictError
from transcription.models import Recording
from transcription.pages.requests import PersonRequest
from transcription.services import purge_plan, retention
from transcription.services.retention_rules import dates_of
from transcription.services.trash import (
    HELD,
    delete_for_ever,
    restore_recording,
    trash_recording,
)

RECORDINGS_A_PAGE: Final = 25


@dataclass(frozen=True, slots=True)
class Row:
    """A recording in the trash, and when it is deleted; None: not by itself."""

    recording: Recording
    deleted_at: datetime | None


@login_required
@require_POST
def recording_delete(request: PersonRequest, recording_id: UUID) -> HttpResponse:
    """Move it to the trash."""
    own = selectors.access_own_recording_by_id(request.user, recording_id)
    trash_recording(recording=own, trashed_by=request.user)
    messages.success(
        request, f"“{own.title}” is in the trash. Until it is deleted there, you can restore it."
    )
    return redirect("home")


@login_required
@require_safe
def trash(request: PersonRequest) -> HttpResponse:
    """The latest first."""
    trashed = selectors.trashed_recordings_of(request.user).order_by("-trashed_at", "id")
    page = Paginator(trashed.select_related("trashed_by"), RECORDINGS_A_PAGE).get_page(
        request.GET.get("page")
    )
    return render(request, "trash/trash.html", {"page": page, "rows": _rows(page)})


@login_required
@require_POST
def restore(request: PersonRequest, recording_id: UUID) -> HttpResponse:
    """Out of the trash, to its page."""
    trashed = selectors.access_trashed_recording_by_id(request.user, recording_id)
    had_date = trashed.expires_at
    restored = restore_recording(recording=trashed, restored_by=request.user)
    said = f"“{restored.title}” is restored."
    if restored.expires_at is not None and restored.expires_at != had_date:
        until = timezone.localtime(restored.expires_at)
        said += f" Its time had come, so it is kept until {until:%-d %B %Y} now."
    messages.success(request, said)
    return redirect("recording", restored.id)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: PersonRequest, recording_id: UUID) -> HttpResponse:
    """Ask, naming it; then delete it for ever."""
    trashed = selectors.access_trashed_recording_by_id(request.user, recording_id)
    if trashed.is_held:
        raise ConflictError(HELD)
    if request.method != "POST":
        return render(request, "trash/delete.html", {"recording": trashed})
    delete_for_ever(recording=trashed, deleted_by=request.user)
    messages.success(
        request, f"“{trashed.title}” is deleted for ever, with its audio and its transcripts."
    )
    return redirect("trash")


def _rows(page: Page[Any]) -> list[Row]:
    listed = Recording.objects.filter(id__in=[recording.id for recording in page])
    book = retention.rule_book(timezone.now())
    dates = {
        row.id: dates_of(row.facts, book.of(row.team_id)).delete_at
        for row in purge_plan.rows_of(listed)
    }
    return [Row(recording, dates.get(recording.id)) for recording in page]


urlpatterns = [
    path("recordings/<uuid:recording_id>/delete/", recording_delete, name="recording_delete"),
    path("trash/", trash, name="trash"),
    path("trash/<uuid:recording_id>/restore/", restore, name="trash_restore"),
    path("trash/<uuid:recording_id>/delete/", delete, name="trash_delete"),
]
