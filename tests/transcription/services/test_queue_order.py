"""Whose turn it is: live first, short before long, people in turns, nobody starves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from transcription.services.queue_order import Waiting, in_order

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def job(
    number: int,
    *,
    owner: int = 1,
    minutes: int = 5,
    is_live: bool = False,
    waits: timedelta = MINUTE,
    last: timedelta | None = None,
) -> Waiting:
    return Waiting(
        id=UUID(int=number),
        owner=owner,
        is_live=is_live,
        left_ms=minutes * 60_000,
        enqueued_at=NOW - waits,
        last_slice_at=None if last is None else NOW - last,
    )


def order(*jobs: Waiting, served: dict[int, timedelta] | None = None) -> list[int]:
    served_at = {owner: NOW - ago for owner, ago in (served or {}).items()}
    return [waiting.id.int for waiting in in_order(jobs, served_at=served_at, now=NOW)]


def test_live_comes_before_short_and_short_before_long() -> None:
    jobs = (job(1, minutes=90), job(2, minutes=5), job(3, minutes=90, is_live=True))
    assert order(*jobs) == [3, 2, 1]


def test_people_take_turns_however_many_jobs_one_has() -> None:
    alices = [job(number, owner=1, waits=5 * MINUTE) for number in (1, 2, 3)]
    assert order(*alices, job(4, owner=2)) == [1, 4, 2, 3]


def test_the_person_served_longest_ago_is_next() -> None:
    jobs = (job(1, owner=1, waits=3 * MINUTE), job(2, owner=2))
    assert order(*jobs, served={1: MINUTE, 2: 30 * MINUTE}) == [2, 1]


def test_within_a_person_the_oldest_comes_first() -> None:
    assert order(job(1), job(2, waits=2 * MINUTE)) == [2, 1]


def test_a_long_job_that_waits_grows_until_it_is_first() -> None:
    long = job(1, owner=1, minutes=300, waits=25 * MINUTE)
    shorts = [job(number, owner=number) for number in range(2, 6)]
    assert order(*shorts, long)[0] == 1


def test_a_slice_begins_the_wait_anew() -> None:
    long = job(1, minutes=300, waits=200 * MINUTE, last=MINUTE)
    assert order(long, job(2, owner=2)) == [2, 1]
