"""Batch work waits while a live stream lags, and only then."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from transcription.runners import pacing


class Clock:
    """Stands for the time module: sleeping moves it."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Status:
    def __init__(self, lag_ms: int) -> None:
        self.lag_ms = lag_ms


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(pacing, "time", clock)
    return clock


def lagging(monkeypatch: pytest.MonkeyPatch, *lags_ms: int) -> None:
    """Each look sees the next of `lags_ms`, then none."""
    left = list(lags_ms)
    monkeypatch.setattr(
        pacing, "engine_statuses_sync", lambda broker: [Status(left.pop(0) if left else 0)]
    )


def never() -> bool:
    return False


def test_it_waits_until_live_streams_are_on_time(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lagging(monkeypatch, 900, 700)
    assert pacing.LivePace().wait_for_live(stop=never) is False
    assert clock.now == 100.0 + 2 * pacing.LOOK_EVERY_S


def test_it_does_not_wait_without_lag_or_engine(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lagging(monkeypatch, pacing.LAG_LIMIT_MS)
    pacing.LivePace().wait_for_live(stop=never)
    monkeypatch.setattr(pacing, "engine_statuses_sync", lambda broker: [])
    pacing.LivePace().wait_for_live(stop=never)
    assert clock.now == 100.0


def test_it_looks_at_most_twice_a_second(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    pace = pacing.LivePace()
    lagging(monkeypatch, 0, 900)
    pace.wait_for_live(stop=never)
    pace.wait_for_live(stop=never)
    assert clock.now == 100.0


def test_lag_without_end_does_not_stop_batch_work_for_ever(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lagging(monkeypatch, *[900] * 1000)
    pacing.LivePace().wait_for_live(stop=never)
    assert clock.now == 100.0 + pacing.LONGEST_WAIT_S


def test_a_cancel_ends_the_wait(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    lagging(monkeypatch, *[900] * 1000)
    assert pacing.LivePace().wait_for_live(stop=lambda: True) is True


def test_a_broker_that_is_away_stops_nothing(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(broker: Any) -> list[Status]:
        raise redis.ConnectionError

    monkeypatch.setattr(pacing, "engine_statuses_sync", away)
    assert pacing.LivePace().wait_for_live(stop=never) is False
    assert clock.now == 100.0
