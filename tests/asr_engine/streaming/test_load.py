from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asr_engine.streaming.load import BUSY_SHARE, WINDOW_S, LoadMeter

CHUNK = 2560
CHUNK_S = 0.16


def meter_of(
    times: dict[int, float],
    *,
    chunk_samples: int = CHUNK,
    batch_limit: int = 64,
    takes_longer_chunks: bool = False,
) -> LoadMeter:
    """A meter that saw steps of as many streams as `times` has keys, at second 0."""
    meter = LoadMeter(batch_limit=batch_limit, takes_longer_chunks=takes_longer_chunks)
    for streams, busy_s in times.items():
        meter.add_step(now=0.0, chunk_samples=chunk_samples, streams=streams, busy_s=busy_s)
    return meter


def most_streams(meter: LoadMeter, *, chunk_samples: int = CHUNK, now: float = 0.0) -> int:
    """How many it would admit, one after the other."""
    count = 1
    while meter.busy_share({chunk_samples: count + 1}, now=now) <= BUSY_SHARE:
        count += 1
    return count


def test_nothing_measured_is_nothing_against_a_stream() -> None:
    assert LoadMeter(batch_limit=8).busy_share({CHUNK: 500}, now=0.0) == 0


def test_one_stream_seen_alone_promises_no_gain_from_batches() -> None:
    """20 ms of 160 each."""
    meter = meter_of({1: 0.020})
    assert meter.busy_share({CHUNK: 6}, now=0.0) == pytest.approx(6 * 0.020 / CHUNK_S)
    assert most_streams(meter) == 6


def test_a_step_that_hardly_grows_lets_many_in() -> None:
    """As on a GPU: what a batch of 40 costs is known from one of 32."""
    meter = meter_of({1: 0.020, 8: 0.022, 32: 0.030})
    assert meter.busy_share({CHUNK: 32}, now=0.0) == pytest.approx(0.030 / CHUNK_S)
    assert meter.busy_share({CHUNK: 20}, now=0.0) == pytest.approx(0.030 / CHUNK_S)
    assert meter.busy_share({CHUNK: 40}, now=0.0) == pytest.approx(0.030 * 40 / 32 / CHUNK_S)


def test_a_step_that_grows_with_its_streams_lets_few_in() -> None:
    """As on a CPU: 40 ms and 30 ms a stream."""
    assert most_streams(meter_of({size: 0.040 + 0.030 * size for size in range(1, 5)})) == 3


def test_more_streams_than_a_step_takes_make_rounds() -> None:
    """As with Whisper, which takes as many as there are cores."""
    meter = meter_of({1: 0.10, 2: 0.11}, chunk_samples=8960, batch_limit=2)
    assert meter.busy_share({8960: 5}, now=0.0) == pytest.approx((2 * 0.11 + 0.10) / 0.56)


def test_a_model_that_takes_longer_chunks_may_gather_them() -> None:
    """Within the tolerated lag: two chunks of 560 ms, for the price of one."""
    meter = meter_of({1: 0.3}, chunk_samples=8960, takes_longer_chunks=True)
    assert meter.busy_share({8960: 1}, now=0.0) == pytest.approx(0.3 / 1.12)


def test_another_mode_is_judged_by_the_steps_of_those_that_were_seen() -> None:
    meter = meter_of({4: 0.040}, chunk_samples=8960)
    assert meter.busy_share({1280: 4}, now=0.0) == pytest.approx(0.040 / 0.08)
    assert meter.busy_share({17_920: 4}, now=0.0) == pytest.approx(0.080 / 1.12)


def test_modes_add_up() -> None:
    meter = meter_of({1: 0.010})
    alone = meter.busy_share({CHUNK: 3}, now=0.0)
    assert meter.busy_share({CHUNK: 3, 17_920: 2}, now=0.0) > alone
    assert meter.busy_share({CHUNK: 3, 17_920: 0}, now=0.0) == pytest.approx(alone)


def test_one_step_that_was_disturbed_changes_nothing() -> None:
    meter = meter_of({1: 0.020})
    for busy_s in (0.020, 3.0, 0.020):
        meter.add_step(now=1.0, chunk_samples=CHUNK, streams=1, busy_s=busy_s)
    assert meter.busy_share({CHUNK: 2}, now=1.0) == pytest.approx(2 * 0.020 / CHUNK_S)


def test_a_machine_that_has_grown_slower_is_found_out_by_any_step() -> None:
    """What a large batch cost is long ago; small ones take twice as long now."""
    meter = meter_of({1: 0.020, 32: 0.030})
    for index in range(20):
        now = 100.0 + index / 10
        meter.add_step(now=now, chunk_samples=CHUNK, streams=1, busy_s=0.060)
    assert meter.busy_share({CHUNK: 32}, now=102.0) == pytest.approx(0.060 / CHUNK_S)
    assert meter.busy_share({CHUNK: 32}, now=102.0 + 2 * WINDOW_S) == pytest.approx(0.030 / CHUNK_S)


def test_work_outside_of_steps_counts_and_grows_with_the_streams() -> None:
    meter = LoadMeter(batch_limit=8)
    for index in range(100):
        now = index / 10
        meter.add_step(now=now, chunk_samples=CHUNK, streams=4, busy_s=0.010)
        meter.add_turn(now=now, busy_s=0.030)
    of_steps = 2 * 0.010 / CHUNK_S
    assert meter.busy_share({CHUNK: 5}, now=10.0) == pytest.approx(
        of_steps * 5 / 8 + 0.2 * 5 / 4, rel=0.05
    )


@given(
    st.dictionaries(st.integers(1, 200), st.floats(0.001, 1), min_size=1, max_size=8),
    st.integers(1, 300),
    st.integers(1, 64),
)
def test_a_stream_more_is_never_cheaper_and_streams_alone_are_the_worst_case(
    times: dict[int, float], streams: int, batch_limit: int
) -> None:
    meter = meter_of(times, batch_limit=batch_limit)
    one, share, more = (
        meter.busy_share({CHUNK: count}, now=0.0) for count in (1, streams, streams + 1)
    )
    assert share <= more * (1 + 1e-9)
    assert share <= streams * one * (1 + 1e-9)
