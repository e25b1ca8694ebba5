"""When the time of a thing is over: at no moment too early, and at none too late."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transcription.services.retention_rules import (
    MAX_DAYS,
    UNLESS_SAID_OTHERWISE,
    Dates,
    Ending,
    Facts,
    RuleBook,
    Rules,
    dates_of,
    due_steps,
)

BEGUN = datetime(2027, 3, 1, 9, 30, tzinfo=UTC)
DAY = timedelta(days=1)
MOMENT = timedelta(microseconds=1)
ALL = Rules(audio_days=10, live_audio_days=5, transcript_days=30, failed_days=3, trash_days=7)


def steps_after(age: timedelta, rules: Rules = ALL, **facts: object) -> tuple[Ending, ...]:
    return due_steps(Facts(created_at=BEGUN, **facts), rules, BEGUN + age)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "days", "step"),
    [
        ({}, 10, Ending.AUDIO),
        ({"is_live": True}, 5, Ending.AUDIO),
        ({"has_audio": False}, 30, Ending.TRASH),
        ({"failed_at": BEGUN}, 3, Ending.TRASH),
        ({"failed_at": BEGUN + DAY}, 4, Ending.TRASH),
        ({"trashed_at": BEGUN}, 7, Ending.DELETE),
        ({"expires_at": BEGUN + 2 * DAY}, 2, Ending.TRASH),
        ({"expires_at": BEGUN + 90 * DAY}, 90, Ending.TRASH),
    ],
)
def test_a_step_is_due_on_its_day_to_the_moment(
    facts: dict[str, object], days: int, step: Ending
) -> None:
    assert step not in steps_after(days * DAY - MOMENT, **facts)
    assert step in steps_after(days * DAY, **facts)
    assert step in steps_after(days * DAY + MOMENT, **facts)


@pytest.mark.parametrize("rules", [Rules(), UNLESS_SAID_OTHERWISE])
def test_without_a_policy_nothing_ends_by_its_age(rules: Rules) -> None:
    assert steps_after(100 * 365 * DAY, rules) == ()
    assert steps_after(100 * 365 * DAY, rules, is_live=True, failed_at=BEGUN) == ()


def test_the_trash_is_kept_only_where_that_is_said() -> None:
    assert steps_after(30 * DAY, UNLESS_SAID_OTHERWISE, trashed_at=BEGUN) == (Ending.DELETE,)
    assert steps_after(100 * 365 * DAY, Rules(), trashed_at=BEGUN) == ()


def test_what_is_held_has_no_dates_at_all() -> None:
    held = Facts(BEGUN, is_held=True, trashed_at=BEGUN, expires_at=BEGUN, failed_at=BEGUN)
    assert dates_of(held, ALL) == Dates()


def test_what_is_in_flight_is_left_alone_however_old() -> None:
    assert steps_after(1000 * DAY, is_busy=True) == ()
    assert steps_after(1000 * DAY, is_busy=True, trashed_at=BEGUN) == ()


def test_audio_goes_also_out_of_the_trash() -> None:
    assert steps_after(10 * DAY, trashed_at=BEGUN + 9 * DAY) == (Ending.AUDIO,)


def test_what_is_due_twice_at_once_loses_its_audio_and_goes_to_the_trash() -> None:
    assert steps_after(30 * DAY) == (Ending.AUDIO, Ending.TRASH)


def test_a_date_of_its_own_keeps_the_audio_until_then() -> None:
    facts = Facts(BEGUN, expires_at=BEGUN + 60 * DAY)
    assert dates_of(facts, ALL) == Dates(trash_at=BEGUN + 60 * DAY)


def test_a_clock_that_went_back_ends_nothing() -> None:
    assert steps_after(-400 * DAY) == ()
    assert steps_after(-400 * DAY, trashed_at=BEGUN, failed_at=BEGUN) == ()


@pytest.mark.parametrize("days", [0, -1, -365, MAX_DAYS + 1])
@pytest.mark.parametrize("name", ["audio_days", "trash_days"])
def test_days_that_no_policy_may_have_are_refused(name: str, days: int) -> None:
    with pytest.raises(ValueError, match=name):
        Rules(**{name: days})


def test_a_team_says_what_it_says_and_follows_in_the_rest() -> None:
    book = RuleBook(ALL, {7: Rules(transcript_days=400)})
    assert book.of(7) == replace(ALL, transcript_days=400)
    assert book.of(None) == book.of(8) == ALL


_DAYS = st.one_of(st.none(), st.integers(1, 800))
_MOMENTS = st.one_of(st.none(), st.integers(-500, 500).map(lambda days: BEGUN + days * DAY))


@given(
    rules=st.builds(Rules, _DAYS, _DAYS, _DAYS, _DAYS, _DAYS),
    facts=st.builds(
        Facts,
        created_at=st.integers(-500, 500).map(lambda days: BEGUN + days * DAY),
        is_live=st.booleans(),
        has_audio=st.booleans(),
        failed_at=_MOMENTS,
        expires_at=_MOMENTS,
        trashed_at=_MOMENTS,
    ),
    days=st.integers(0, 900),
)
def test_what_is_due_stays_due_and_nothing_younger_ends(
    rules: Rules, facts: Facts, days: int
) -> None:
    """Each step is there exactly from its date on, and a deletion stands for all the others."""
    now, dates = BEGUN + days * DAY, dates_of(facts, rules)
    steps = due_steps(facts, rules, now)
    expected = {
        step
        for step, at in (
            (Ending.AUDIO, dates.audio_at),
            (Ending.TRASH, dates.trash_at),
            (Ending.DELETE, dates.delete_at),
        )
        if at is not None and at <= now
    }
    assert set(steps) == ({Ending.DELETE} if Ending.DELETE in expected else expected)
    assert Ending.DELETE not in steps or facts.trashed_at is not None
    assert Ending.TRASH not in steps or facts.trashed_at is None
    assert Ending.AUDIO not in steps or facts.has_audio
