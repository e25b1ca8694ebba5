"""The versions of a recording's transcript, as a list that leads to each of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django import template
from django.utils import formats, timezone

from transcription.models import Recording, RevisionKind, TranscriptRevision
from transcription.services.job_states import ACTIVE

register = template.Library()

FEW: Final = 3
"""As many are seen at once; the others open."""
LISTED: Final = 200
"""The newest ones. Who has more finds them by REST."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One version. `is_read`: its page is the one that shows the list."""

    number: int
    kind: str
    at: str
    is_current: bool
    is_read: bool
    is_incomplete: bool
    is_being_written: bool


@register.inclusion_tag("recording/version_list.html")
def version_list(recording: Recording, read: TranscriptRevision | None = None) -> dict[str, object]:
    """The newest few, the current one among them, then how many more; nothing while there is one.

    `read` is the version whose page this is.
    """
    revisions = recording.revisions.select_related("job").defer("job__checkpoint")
    rows = list(revisions.order_by("-number")[:LISTED])
    entries = [_entry(row, recording, read) for row in rows]
    seen = [one for place, one in enumerate(entries) if place < FEW or one.is_current]
    return {
        "recording_id": recording.id,
        "is_elsewhere": read is not None,
        "has_several": len(entries) > 1,
        "seen": seen,
        "more": [one for one in entries if one not in seen],
    }


def is_incomplete(revision: TranscriptRevision) -> bool:
    """Of a pass that has not come to its end; what a person wrote is as they left it."""
    return not revision.is_complete and revision.kind != RevisionKind.EDITED


def is_being_written(revision: TranscriptRevision) -> bool:
    """Its pass, or the one that refines it, still runs."""
    return is_incomplete(revision) and revision.job is not None and revision.job.state in ACTIVE


def day_and_time(moment: datetime) -> str:
    """“30 Nov, 15:50”; the year is said where it is another."""
    local, today = timezone.localtime(moment), timezone.localtime()
    return formats.date_format(local, "j M, H:i" if local.year == today.year else "j M Y, H:i")


def _entry(row: TranscriptRevision, recording: Recording, read: TranscriptRevision | None) -> Entry:
    return Entry(
        number=row.number,
        kind=row.get_kind_display(),
        at=day_and_time(row.created_at),
        is_current=row.pk == recording.current_revision_id,
        is_read=read is not None and row.pk == read.pk,
        is_incomplete=is_incomplete(row),
        is_being_written=is_being_written(row),
    )
