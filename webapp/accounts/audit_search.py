"""Looking through the audit log: which entries, in what order, from where on.

For administrators: the pages that ask here are theirs alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db.models import Q, QuerySet

from webapp.accounts.models import AuditEntry, User

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class AuditSearch:
    """What is looked for; what is empty leaves all. `until` is the first moment that is not."""

    person: str = ""
    thing: str = ""
    kind: str = ""
    subject_id: str = ""
    act: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the log, after an entry. Its text travels in addresses."""

    at: datetime
    entry_id: int

    @classmethod
    def after(cls, entry: AuditEntry) -> Place:
        return cls(entry.at, entry.pk)

    @classmethod
    def read(cls, text: str) -> Place | None:
        """None for what no `str()` of a place gave."""
        moment, _, entry_id = text.partition("-")
        try:
            return cls(EPOCH + int(moment) * MICROSECOND, int(entry_id))
        except (ValueError, OverflowError):
            return None

    def __str__(self) -> str:
        return f"{(self.at - EPOCH) // MICROSECOND}-{self.entry_id}"


def entries_of(search: AuditSearch) -> QuerySet[AuditEntry]:
    """The newest first. A person is found by address or name, also one who is gone by address."""
    entries = AuditEntry.objects.select_related("actor")
    if search.person:
        named = User.objects.filter(name__icontains=search.person).values("pk")
        entries = entries.filter(Q(actor_name__icontains=search.person) | Q(actor__in=named))
    if search.thing:
        entries = entries.filter(subject_name__icontains=search.thing)
    if search.kind:
        entries = entries.filter(subject_kind=search.kind, subject_id=search.subject_id)
    if search.act:
        entries = entries.filter(act=search.act)
    if search.since is not None:
        entries = entries.filter(at__gte=search.since)
    if search.until is not None:
        entries = entries.filter(at__lt=search.until)
    return entries.order_by("-at", "-id")


def entries_from(
    entries: QuerySet[AuditEntry], place: Place | None, count: int
) -> list[AuditEntry]:
    """The next `count` after `place`: what is written meanwhile moves nothing."""
    if place is not None:
        older = Q(at__lt=place.at) | Q(at=place.at, id__lt=place.entry_id)
        # The first condition is implied; it lets the index on the time be used.
        entries = entries.filter(older, at__lte=place.at)
    return list(entries[:count])
