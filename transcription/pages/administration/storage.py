"""Storage: how much lies here, whose it is, and how old."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.core.paginator import Paginator
from django.db.models import Count, Q, QuerySet, Sum
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_safe

from transcription import selectors
from transcription.models import Recording, Upload, UploadState
from transcription.pages.administration import administrators_only
from transcription.pages.requests import PersonRequest
from transcription.services import machine
from webapp.config import site_settings

PEOPLE_A_PAGE: Final = 30
AGES: Final = (
    ("Less than a week", 7),
    ("Up to a month", 30),
    ("Up to three months", 90),
    ("Up to a year", 365),
    ("Older", None),
)
"""Words, and the days below which a recording is so old."""
HAS_AUDIO: Final = Q(audio_removed_at=None)


@dataclass(frozen=True, slots=True)
class Share:
    """A part of all that is stored: how many recordings, how many bytes of audio, and what share
    of the largest part, for its bar."""

    name: str
    count: int
    size_bytes: int
    percent: int
    detail: str = ""
    trashed: int = 0


@administrators_only
@require_safe
def storage(request: PersonRequest) -> HttpResponse:
    recordings = selectors.recordings_administered_by(request.user)
    people = Paginator(_by_person(recordings), PEOPLE_A_PAGE).get_page(request.GET.get("page"))
    coming = Upload.objects.filter(state__in=(UploadState.RECEIVING, UploadState.CHECKING))
    disk = machine.look_at_disk()
    context = {
        "disk": disk,
        "disk_percent": round(100 * disk.used_share),
        "totals": recordings.order_by().aggregate(
            count=Count("pk"),
            audio_bytes=Sum("size_bytes", filter=HAS_AUDIO, default=0),
            duration_ms=Sum("duration_ms", default=0),
            trashed=Count("pk", filter=~Q(trashed_at=None)),
            trashed_bytes=Sum("size_bytes", filter=HAS_AUDIO & ~Q(trashed_at=None), default=0),
        ),
        "coming": coming.order_by().aggregate(
            count=Count("pk"), size_bytes=Sum("length_bytes", default=0)
        ),
        "page": people,
        "people": _shares_of_people(list(people.object_list)),
        "ages": _by_age(recordings),
        "most_bytes": site_settings().max_stored_bytes_per_person,
    }
    return render(request, "administration/storage.html", context)


def _by_person(recordings: QuerySet[Recording]) -> QuerySet[Any, Any]:
    """One row a person, the largest first."""
    return (
        recordings.order_by()
        .values("owner", "owner__name", "owner__email")
        .annotate(
            count=Count("pk"),
            audio_bytes=Sum("size_bytes", filter=HAS_AUDIO, default=0),
            trashed=Count("pk", filter=~Q(trashed_at=None)),
        )
        .order_by("-audio_bytes", "owner__email")
    )


def _shares_of_people(rows: list[dict[str, Any]]) -> list[Share]:
    largest = max((row["audio_bytes"] for row in rows), default=0)
    return [
        Share(
            name=row["owner__name"] or row["owner__email"],
            count=row["count"],
            size_bytes=row["audio_bytes"],
            percent=_percent(row["audio_bytes"], largest),
            detail=row["owner__email"] if row["owner__name"] else "",
            trashed=row["trashed"],
        )
        for row in rows
    ]


def _by_age(recordings: QuerySet[Recording]) -> list[Share]:
    """All ages by one query, the youngest first."""
    now = timezone.now()
    wanted: dict[str, Any] = {}
    older = Q()
    for index, (_, days) in enumerate(AGES):
        start = None if days is None else now - timedelta(days=days)
        these = older if start is None else older & Q(created_at__gt=start)
        wanted[f"count_{index}"] = Count("pk", filter=these)
        wanted[f"bytes_{index}"] = Sum("size_bytes", filter=these & HAS_AUDIO, default=0)
        older = Q(created_at__lte=start)
    found = recordings.order_by().aggregate(**wanted)
    sizes = [found[f"bytes_{index}"] for index in range(len(AGES))]
    return [
        Share(words, found[f"count_{index}"], sizes[index], _percent(sizes[index], max(sizes)))
        for index, (words, _) in enumerate(AGES)
    ]


def _percent(part: int, whole: int) -> int:
    return round(100 * part / whole) if whole else 0


urlpatterns = [path("storage/", storage, name="administration_storage")]
