from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from asr_engine.streaming.scheduler import (
    MAX_CHUNKS_AT_ONCE,
    PlannedChunk,
    ReadyStream,
    Scheduler,
)

CHUNKS = {80: 1280, 160: 2560, 1120: 17_920}


def ready(
    stream: str, *, deadline_s: float = 10.0, mode_ms: int = 160, available: int = 2560
) -> ReadyStream:
    return ReadyStream(stream, CHUNKS[mode_ms], available, deadline_s)


def test_nothing_ready_plans_nothing() -> None:
    assert Scheduler(8).plan([], now=0.0) is None


def test_oldest_deadline_comes_first() -> None:
    batch = Scheduler(2).plan(
        [ready("late", deadline_s=3), ready("latest", deadline_s=4), ready("first", deadline_s=1)],
        now=0.0,
    )
    assert batch is not None
    assert [item.stream for item in batch.chunks] == ["first", "late"]


def test_a_batch_has_one_chunk_length_that_of_the_most_urgent_stream() -> None:
    batch = Scheduler(8).plan(
        [
            ready("a", deadline_s=2),
            ready("b", deadline_s=1, mode_ms=1120, available=17_920),
            ready("c", deadline_s=3, mode_ms=1120, available=17_920),
        ],
        now=0.0,
    )
    assert batch is not None
    assert batch.chunk_samples == 17_920
    assert [item.stream for item in batch.chunks] == ["b", "c"]


def test_a_chunk_was_ready_its_length_before_its_deadline() -> None:
    batch = Scheduler(8).plan([ready("a", deadline_s=4), ready("b", deadline_s=3)], now=0.0)
    assert batch is not None
    assert batch.ready_at_s == 3 - 0.16


def test_laggard_takes_several_chunks_where_the_model_can() -> None:
    laggard = ready("a", deadline_s=1, available=5 * 2560 + 100)
    batch = Scheduler(8, takes_longer_chunks=True).plan([laggard], now=2.0)
    assert batch is not None
    assert batch.chunks == (PlannedChunk("a", 5 * 2560, 1),)


def test_laggard_takes_one_chunk_where_the_model_cannot() -> None:
    batch = Scheduler(8).plan([ready("a", deadline_s=1, available=5 * 2560)], now=2.0)
    assert batch is not None
    assert batch.chunks == (PlannedChunk("a", 2560, 1),)


def test_a_stream_on_time_takes_one_chunk() -> None:
    on_time = ready("a", deadline_s=3, available=5 * 2560)
    batch = Scheduler(8, takes_longer_chunks=True).plan([on_time], now=2.0)
    assert batch is not None
    assert batch.chunks == (PlannedChunk("a", 2560, 3),)


def test_the_step_of_a_laggard_is_bounded() -> None:
    laggard = ready("a", deadline_s=0, available=1000 * 2560)
    batch = Scheduler(8, takes_longer_chunks=True).plan([laggard], now=100.0)
    assert batch is not None
    assert batch.chunks[0].samples == MAX_CHUNKS_AT_ONCE * 2560


def test_short_last_chunk_is_planned_as_it_is() -> None:
    batch = Scheduler(8).plan([ready("a", available=77)], now=0.0)
    assert batch is not None
    assert batch.chunks == (PlannedChunk("a", 77, 10.0),)


@given(
    st.lists(
        st.builds(
            ReadyStream,
            stream=st.uuids().map(str),
            chunk_samples=st.sampled_from([1280, 2560]),
            available_samples=st.integers(1, 100_000),
            deadline_s=st.floats(0, 100),
        ),
        max_size=30,
        unique_by=lambda item: item.stream,
    ),
    st.integers(1, 8),
    st.booleans(),
    st.floats(0, 100),
)
def test_plan_is_bounded_and_in_order(
    streams: list[ReadyStream], limit: int, takes_longer: bool, now: float
) -> None:
    batch = Scheduler(limit, takes_longer_chunks=takes_longer).plan(streams, now)
    if not streams:
        assert batch is None
        return
    assert batch is not None
    by_name = {item.stream: item for item in streams}
    chosen = [by_name[item.stream] for item in batch.chunks]
    assert {item.chunk_samples for item in chosen} == {batch.chunk_samples}
    alike = [item for item in streams if item.chunk_samples == batch.chunk_samples]
    assert len(chosen) == min(limit, len(alike))
    assert chosen[0].deadline_s == min(item.deadline_s for item in streams)
    left = [item for item in alike if item not in chosen]
    assert all(item.deadline_s <= other.deadline_s for item in chosen for other in left)
    for item in batch.chunks:
        assert 0 < item.samples <= by_name[item.stream].available_samples
