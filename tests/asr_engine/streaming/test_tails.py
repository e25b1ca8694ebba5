from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from asr_engine.streaming.tails import plan_tail

LENGTHS = [1280, 2560, 8960, 17_920]
ANY_LENGTHS = st.lists(st.integers(1, 20_000), min_size=1, max_size=5, unique=True).map(sorted)


def test_nothing_left_needs_no_chunk() -> None:
    assert plan_tail(0, 9999, LENGTHS) == ()
    assert plan_tail(-500, 9999, LENGTHS) == ()


def test_the_shortest_chunk_that_holds_the_rest_is_taken() -> None:
    assert plan_tail(1281, 17_000, LENGTHS) == (2560,)
    assert plan_tail(1280, None, LENGTHS) == (1280,)


def test_a_longer_chunk_is_not_waited_for() -> None:
    assert plan_tail(7000, 8000, LENGTHS) == (2560, 2560, 2560)


def test_beyond_what_is_known_the_shortest_chunk_waits_for_audio() -> None:
    assert plan_tail(2000, 1500, LENGTHS) == (1280, 1280)


def test_a_rest_longer_than_any_chunk_takes_several() -> None:
    assert plan_tail(20_000, None, LENGTHS) == (17_920, 2560)


@given(st.integers(0, 60_000), st.none() | st.integers(0, 60_000), ANY_LENGTHS)
def test_a_tail_holds_the_rest_and_no_chunk_too_many(
    rest: int, known: int | None, lengths: list[int]
) -> None:
    tail = plan_tail(rest, known, lengths)
    assert set(tail) <= set(lengths)
    assert sum(tail) >= rest
    assert sum(tail[:-1]) < max(rest, 1)


@given(st.integers(0, 60_000), st.integers(0, 60_000), ANY_LENGTHS)
def test_only_the_shortest_chunk_waits_for_audio(rest: int, known: int, lengths: list[int]) -> None:
    tail = plan_tail(rest, known, lengths)
    for chunk, end in zip(tail, itertools.accumulate(tail), strict=True):
        assert end <= known or chunk == lengths[0]


@given(st.integers(1, 60_000), st.none() | st.integers(0, 60_000), ANY_LENGTHS)
def test_a_plan_may_be_made_again_at_any_of_its_chunks(
    rest: int, known: int | None, lengths: list[int]
) -> None:
    """A stream asks for the next chunk only, each time from where it is."""
    tail = plan_tail(rest, known, lengths)
    left = None if known is None else known - tail[0]
    assert tail == (tail[0], *plan_tail(rest - tail[0], left, lengths))


@given(st.integers(1, 17_919), st.sampled_from([4800, 5120, 9600]))
def test_the_tail_of_an_endpoint_is_short(rest: int, silence_after: int) -> None:
    """Of any chunk of these modes, with the silence rule's audio there: never above five steps."""
    assert len(plan_tail(rest, rest + silence_after, LENGTHS)) <= 5
