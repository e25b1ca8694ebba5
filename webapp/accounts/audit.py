"""The audit log: one entry for each act, written in the transaction of the act.

What people do over and over (viewing, playing, exporting, editing, using a token) is told once for
a person, a thing and an act in ten minutes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from django.db.models import Model
from django.utils import timezone

from webapp.accounts.models import Act, AuditEntry, User

WINDOW: Final = timedelta(minutes=10)
TOLD_ONCE: Final = frozenset({Act.VIEWED, Act.PLAYED, Act.EXPORTED, Act.EDITED, Act.TOKEN_USED})


def record_act(
    *,
    act: Act,
    actor: User | None,
    on: Model | None = None,
    detail: Mapping[str, str | int | bool | None] | None = None,
    token_name: str = "",
    address: str | None = None,
) -> None:
    """Write that `actor` (None: the server itself) did `act`, to the thing `on`.

    `detail` says how, in a few plain values; never a transcript's words, a secret or a token.
    """
    kind = "" if on is None else type(on).__name__.lower()
    name = "" if on is None else str(on)[:300]
    subject_id = "" if on is None else str(on.pk)
    entry = AuditEntry(
        actor=actor,
        actor_name="" if actor is None else actor.email,
        token_name=token_name,
        address=address,
        act=act,
        subject_kind=kind,
        subject_id=subject_id,
        subject_name=name,
        detail=dict(detail or {}),
    )
    if act not in TOLD_ONCE:
        entry.save(force_insert=True)
        return
    same = {"actor": actor, "act": act, "subject_kind": kind, "subject_id": subject_id}
    if AuditEntry.objects.filter(**same, at__gt=timezone.now() - WINDOW).exists():
        return
    # Two at once pass the look: the constraint keeps one of them.
    entry.window = int(time.time() // WINDOW.total_seconds())
    AuditEntry.objects.bulk_create([entry], ignore_conflicts=True)
