"""What a purge would do: which thing ends, in which step, and when.

The one planner behind the purge, its dry run and the preview of a policy. It reads, and changes
nothing; the rules themselves are `retention_rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from transcription.models import (
    Job,
    JobState,
    LiveSession,
    LiveState,
    Recording,
    RecordingSource,
    RecordingState,
    Upload,
    UploadState,
)
from transcription.services.retention_rules import (
    Ending,
    Facts,
    RuleBook,
    days_after,
    due_steps,
    is_over,
)

PAGE: Final = 200
"""Rows that are read together: bounds the memory, and the time that a query takes."""
FIELDS: Final = (
    "id",
    "team_id",
    "size_bytes",
    "source",
    "state",
    "current_revision_id",
    "created_at",
    "expires_at",
    "trashed_at",
    "audio_removed_at",
    "is_held",
)
IN_FLIGHT: Final = (JobState.QUEUED, JobState.RUNNING)


class ThingKind(StrEnum):
    RECORDING = "recording"
    SESSION = "session"
    """A live session that ended without audio, and so became no recording."""
    UPLOAD = "upload"
    """An upload that was refused: its bytes are gone, its name is not."""


@dataclass(frozen=True, slots=True)
class Row:
    """One recording as the planner read it. `size_bytes` is what its source takes on disk."""

    id: UUID
    team_id: int | None
    size_bytes: int
    facts: Facts


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that is due. `size_bytes` is what its end gives back."""

    kind: ThingKind
    id: UUID
    ending: Ending
    size_bytes: int = 0


@dataclass(slots=True)
class Night:
    """What one purge will do, as far as that can be known before."""

    at: datetime
    audio: int = 0
    audio_bytes: int = 0
    trashed: int = 0
    deleted: int = 0
    deleted_bytes: int = 0
    others: int = 0

    @property
    def is_quiet(self) -> bool:
        return not (self.audio or self.trashed or self.deleted or self.others)


def due_steps_at(now: datetime, book: RuleBook, *, only: UUID | None = None) -> Iterator[Step]:
    """Everything that is due at `now`, or what is due of one thing, as it is at this moment.

    In the order in which a purge takes it. Rows are read a page at a time, so that a purge may act
    on each while it goes.
    """
    for row in rows_of(_among(Recording.objects.all(), only)):
        for ending in due_steps(row.facts, book.of(row.team_id), now):
            yield Step(ThingKind.RECORDING, row.id, ending, _bytes_freed(row, ending))
    for kind, thing_id, at in _other_dates(book, only):
        if is_over(at, now):
            yield Step(kind, thing_id, Ending.DELETE)


def preview(nights: Sequence[tuple[datetime, RuleBook]]) -> list[Night]:
    """What the purges of `nights` will do, each by its rules, to what is here today.

    What is being transcribed today is taken to be done by then.
    """
    shown = [Night(at) for at, _ in nights]
    if not nights:
        return shown
    last, books = nights[-1][0], {id(book): book for _, book in nights}.values()
    for row in rows_of(Recording.objects.all()):
        row = replace(row, facts=replace(row.facts, is_busy=False))  # noqa: PLW2901 - the same row
        if any(due_steps(row.facts, book.of(row.team_id), last) for book in books):
            _live_through(row, nights, shown)
    others = [list(_other_dates(book, None)) for _, book in nights[-1:]]
    for _, _, at in others[0]:
        night = next((night for night in shown if is_over(at, night.at)), None)
        if night is not None:
            night.others += 1
    return shown


def rows_of(recordings: QuerySet[Recording]) -> Iterator[Row]:
    """What the rules look at in each of `recordings`."""
    jobs = Job.objects.filter(recording=OuterRef("id"))
    ended = jobs.exclude(finished_at=None).order_by("-finished_at").values("finished_at")
    with_facts = recordings.annotate(
        is_busy=Exists(jobs.filter(state__in=IN_FLIGHT)), job_ended_at=Subquery(ended[:1])
    )
    # Plain values: a large site has many recordings, and nothing else of them is wanted here.
    for row in _pages(with_facts.values_list(*FIELDS, "is_busy", "job_ended_at", named=True)):
        yield Row(
            id=row.id,
            team_id=row.team_id,
            size_bytes=0 if row.audio_removed_at else row.size_bytes,
            facts=Facts(
                created_at=row.created_at,
                is_live=row.source == RecordingSource.LIVE,
                has_audio=row.audio_removed_at is None,
                failed_at=(row.job_ended_at or row.created_at) if _has_failed(row) else None,
                expires_at=row.expires_at,
                trashed_at=row.trashed_at,
                is_held=row.is_held,
                is_busy=row.is_busy,
            ),
        )


def facts_of(recording: Recording) -> Facts:
    """As the recording is at this moment."""
    return next(rows_of(Recording.objects.filter(id=recording.id))).facts


def _has_failed(row: Any) -> bool:
    """Nothing is under way, and nothing was ever written."""
    return row.state == RecordingState.ATTENTION and row.current_revision_id is None


def _live_through(
    row: Row, nights: Sequence[tuple[datetime, RuleBook]], shown: Sequence[Night]
) -> None:
    """Count each step that the recording takes on its way."""
    for (at, book), night in zip(nights, shown, strict=True):
        for ending in due_steps(row.facts, book.of(row.team_id), at):
            freed = _bytes_freed(row, ending)
            match ending:
                case Ending.DELETE:
                    night.deleted += 1
                    night.deleted_bytes += freed
                    return
                case Ending.TRASH:
                    night.trashed += 1
                    row = replace(row, facts=replace(row.facts, trashed_at=at))
                case Ending.AUDIO:
                    night.audio += 1
                    night.audio_bytes += freed
                    facts = replace(row.facts, has_audio=False)
                    row = replace(row, size_bytes=0, facts=facts)


def _bytes_freed(row: Row, ending: Ending) -> int:
    return 0 if ending == Ending.TRASH else row.size_bytes


def _other_dates(
    book: RuleBook, only: UUID | None
) -> Iterator[tuple[ThingKind, UUID, datetime | None]]:
    """When the time of what never became a recording is over."""
    sessions = LiveSession.objects.filter(state=LiveState.ENDED, recording=None)
    sessions = sessions.annotate(over_at=Coalesce("ended_at", "created_at"))
    for session in _pages(_among(sessions, only)):
        days = book.of(session.team_id).transcript_days
        yield ThingKind.SESSION, session.id, days_after(session.over_at, days)
    uploads = Upload.objects.filter(state=UploadState.REFUSED)
    for upload in _pages(_among(uploads, only)):
        days = book.organisation.failed_days
        yield ThingKind.UPLOAD, upload.id, days_after(upload.touched_at, days)


def _among(things: QuerySet[Any], only: UUID | None) -> QuerySet[Any]:
    return things if only is None else things.filter(id=only)


def _pages(things: QuerySet[Any]) -> Iterator[Any]:
    """All of them by their ids, a page at a time: what is read may be deleted before the next."""
    things = things.order_by("id")
    page = list(things[:PAGE])
    while page:
        yield from page
        page = list(things.filter(id__gt=page[-1].id)[:PAGE]) if len(page) == PAGE else []
