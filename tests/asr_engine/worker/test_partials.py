from __future__ import annotations

from asr_engine.events import Partial
from asr_engine.worker.partials import PARTIAL_INTERVAL_S, PartialBoard


def partial(text: str, stream: str = "a") -> Partial:
    return Partial(stream, 0, 0, 100, text)


def test_only_the_newest_partial_is_sent() -> None:
    board = PartialBoard()
    board.put(partial("one"))
    board.put(partial("one two"))
    assert [item.text for item in board.take_due(10.0)] == ["one two"]
    assert board.take_due(20.0) == []


def test_at_most_five_a_second_are_sent() -> None:
    board = PartialBoard()
    sent = 0
    for tick in range(100):
        board.put(partial(str(tick)))
        sent += len(board.take_due(tick * 0.02))
    assert sent <= 2.0 / PARTIAL_INTERVAL_S


def test_streams_do_not_wait_for_each_other() -> None:
    board = PartialBoard()
    board.put(partial("x", "a"))
    board.take_due(10.0)
    board.put(partial("y", "b"))
    assert [item.stream for item in board.take_due(10.01)] == ["b"]


def test_nothing_is_kept_of_a_stream_that_says_no_more() -> None:
    """Also of one that another engine took, which ends without a word."""
    board = PartialBoard()
    board.put(partial("x"))
    board.take_due(10.0)
    board.take_due(11.0)
    assert not board._places


def test_a_final_withdraws_the_partial_that_waits() -> None:
    board = PartialBoard()
    board.put(partial("old"))
    board.withdraw("a")
    assert board.take_due(10.0) == []
