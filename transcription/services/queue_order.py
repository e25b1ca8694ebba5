"""Whose turn it is: the order of waiting jobs, pure.

Live refine before short before long; within a class people take turns, the one served longest ago
first; a job that waits grows into the next class, so that none starves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

SHORT_MS: Final = 10 * 60 * 1000
PROMOTED_EVERY: Final = timedelta(minutes=10)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that waits for a worker. `last_slice_at` is when it was last worked on."""

    id: UUID
    owner: int
    is_live: bool
    left_ms: int
    enqueued_at: datetime
    last_slice_at: datetime | None


def in_order(
    waiting: Iterable[Waiting], *, served_at: Mapping[int, datetime], now: datetime
) -> list[Waiting]:
    """`waiting`, the next one first. `served_at` says when a person last had a worker."""
    turns: defaultdict[tuple[int, int], int] = defaultdict(int)
    keys: dict[UUID, tuple[int, int, datetime, datetime]] = {}
    jobs = sorted(waiting, key=lambda job: (job.last_slice_at or job.enqueued_at, job.id))
    for job in jobs:
        rank = _class(job, now)
        turn = turns[rank, job.owner]
        turns[rank, job.owner] += 1
        keys[job.id] = (rank, turn, served_at.get(job.owner, _NEVER), job.enqueued_at)
    return sorted(jobs, key=lambda job: keys[job.id])


def _class(job: Waiting, now: datetime) -> int:
    if job.is_live:
        return 0
    rank = 1 if job.left_ms <= SHORT_MS else 2
    waits = now - (job.last_slice_at or job.enqueued_at)
    return max(0, rank - int(waits / PROMOTED_EVERY))
