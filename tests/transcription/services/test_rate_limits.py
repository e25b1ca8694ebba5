"""Rate limits: counted for each caller, told with what is left, and gone with the broker."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from transcription.services import rate_limits
from transcription.services.rate_limits import Kind, take
from webapp.config import site_settings


@pytest.fixture(autouse=True)
def forget_limiter() -> Iterator[None]:
    yield
    rate_limits._limiter.cache_clear()


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> int:
    changed = site_settings().model_copy(update={"api_requests_per_minute": 3})
    monkeypatch.setattr(rate_limits, "site_settings", lambda: changed)
    return 3


def test_one_too_many_is_spent_and_says_when_it_begins_anew(limit: int) -> None:
    who = uuid4().hex
    allowances = [take(who, Kind.REQUEST) for _ in range(limit + 2)]
    assert [allowance.remaining for allowance in allowances] == [2, 1, 0, 0, 0]
    assert [allowance.is_spent for allowance in allowances] == [False] * 3 + [True] * 2
    assert {allowance.limit for allowance in allowances} == {limit}
    assert all(1 <= allowance.reset_s <= rate_limits.WINDOW_S for allowance in allowances)


def test_callers_and_kinds_are_counted_apart(limit: int) -> None:
    one, other = uuid4().hex, uuid4().hex
    for _ in range(limit + 1):
        spent = take(one, Kind.REQUEST)
    assert spent.is_spent
    assert take(other, Kind.REQUEST).remaining == limit - 1
    assert take(one, Kind.REFUSED_TOKEN).remaining == rate_limits.REFUSED_TOKENS - 1


def test_everybody_may_where_the_broker_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    rate_limits._limiter.cache_clear()
    dead = site_settings().model_copy(update={"broker_url": "redis://127.0.0.1:1/0"})
    monkeypatch.setattr(rate_limits, "site_settings", lambda: dead)
    allowance = take("somebody", Kind.REQUEST)
    assert (allowance.is_spent, allowance.remaining) == (False, allowance.limit)
