"""Items are taken ahead by a thread, no further than allowed, and none is lost or swapped."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from asr_engine.batch.ahead import ReadAhead


def nothing() -> None:
    pass


def test_items_come_in_order() -> None:
    ahead: ReadAhead[int] = ReadAhead(limit=2, check=nothing)
    ahead.start(iter(range(100)))
    assert list(ahead) == list(range(100))
    ahead.close()


def test_no_more_is_taken_than_allowed() -> None:
    taken: list[int] = []
    is_full = threading.Event()

    def items() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            # Two are held and the third waits for its place.
            if number == 2:
                is_full.set()
            yield number

    ahead: ReadAhead[int] = ReadAhead(limit=2, check=nothing)
    ahead.start(items())
    assert is_full.wait(timeout=30)
    ahead.close()
    assert taken == [0, 1, 2]


def test_a_fault_comes_after_the_items_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise RuntimeError

    ahead: ReadAhead[int] = ReadAhead(limit=2, check=nothing)
    ahead.start(items())
    assert next(ahead) == 1
    with pytest.raises(RuntimeError):
        next(ahead)
    ahead.close()


def test_closing_what_was_never_started_is_harmless() -> None:
    ahead: ReadAhead[int] = ReadAhead(limit=2, check=nothing)
    ahead.close()
    with pytest.raises(Exception, match="cancelled"):
        ahead.must_go_on()
