"""The audit log: one entry for each act, written in the transaction of the act.

What people do over and over (viewing, playing, exporting, editing, using a token) is told once for
a person, a thing and an act in ten minutes. The database refuses to change an entry; entries go
by age alone (`forget_expired_entries`).

Where an act comes from (the address, the token's name) is told by the border that it came over: the
middleware of pages and REST, and that of sockets (`accounts.middleware`).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Model
from django.utils import timezone

from webapp.accounts.models import Act, AuditEntry, User
from webapp.config import site_settings

WINDOW: Final = timedelta(minutes=10)
TOLD_ONCE: Final = frozenset({Act.VIEWED, Act.PLAYED, Act.EXPORTED, Act.EDITED, Act.TOKEN_USED})
BATCH: Final = 1000
"""Old entries that go in one transaction."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where what happens now comes from; empty for the server's own acts."""

    address: str | None = None
    token_name: str = ""


_origin: ContextVar[Origin | None] = ContextVar("audit_origin", default=None)


@contextmanager
def acts_from(address: str | None) -> Iterator[None]:
    """What is recorded inside came from `address`; an odd or empty one is left out."""
    try:
        known = None if not address else str(ipaddress.ip_address(address.partition("%")[0]))
    except ValueError:
        known = None
    before = _origin.set(Origin(address=known))
    try:
        yield
    finally:
        _origin.reset(before)


def note_token(name: str) -> None:
    """The request or socket that runs now proved itself by the token of this name."""
    origin = _origin.get()
    if origin is not None:
        _origin.set(replace(origin, token_name=name[:100]))


def record_act(
    *,
    act: Act,
    actor: User | None,
    on: Model | None = None,
    detail: Mapping[str, str | int | bool | None] | None = None,
) -> None:
    """Write that `actor` (None: the server itself) did `act`, to the thing `on`.

    `detail` says how, in a few plain values; never a transcript's words, a secret or a token.
    """
    origin, now = _origin.get() or Origin(), timezone.now()
    entry = AuditEntry(
        at=now,
        actor=actor,
        actor_name="" if actor is None else actor.email,
        token_name=origin.token_name,
        address=origin.address,
        act=act,
        subject_kind="" if on is None else type(on).__name__.lower(),
        subject_id="" if on is None else str(on.pk),
        subject_name="" if on is None else str(on)[:300],
        detail=dict(detail or {}),
    )
    if act not in TOLD_ONCE:
        entry.save(force_insert=True)
        return
    same = AuditEntry.objects.filter(
        actor=actor, act=act, subject_kind=entry.subject_kind, subject_id=entry.subject_id
    )
    if same.filter(at__gt=now - WINDOW).exists():
        return
    # Two at once pass the look: the constraint keeps one of them.
    entry.window = int(now.timestamp() // WINDOW.total_seconds())
    AuditEntry.objects.bulk_create([entry], ignore_conflicts=True)


def forget_expired_entries() -> int:
    """Delete the entries older than `TRANSCRIBE_AUDIT_DAYS`; how many they were."""
    days = site_settings().audit_days
    count = forget_entries(before=timezone.now() - timedelta(days=days))
    if count:
        record_act(
            act=Act.PURGED,
            actor=None,
            detail={"what": "audit log", "count": count, "older_than_days": days},
        )
    return count


def forget_entries(*, before: datetime) -> int:
    """Delete what is older than `before`, a batch at a time; how many they were."""
    forgotten = 0
    while True:
        oldest = (
            AuditEntry.objects.filter(at__lt=before).order_by("at").values_list("pk", flat=True)
        )
        deleted, _ = AuditEntry.objects.filter(pk__in=list(oldest[:BATCH])).delete()
        forgotten += deleted
        if deleted < BATCH:
            return forgotten
