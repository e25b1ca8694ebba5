from __future__ import annotations

from asr_engine.events import Partial
from asr_engine.worker.partials import BURST, PARTIAL_INTERVAL_S, PartialBoard


def partial(text: str, stream: str = "a") -> Partial:
    return Partial(stream, 0, 0, 100, text)


def test_only_the_newest_partial_is_sent() -> None:
    board = PartialBoard()
    board.put(partial("one"))
    board.put(partial("one two"))
    assert [item.text for item in board.take_due(10.0)] == ["one two"]
    assert board.take_due(20.0) == []


def test_at_most_five_a_second_are_sent_after_a_first_burst() -> None:
    board = PartialBoard()
    sent = 0
    for tick in range(100):
        board.put(partial(str(tick)))
        sent += len(board.take_due(tick * 0.02))
    assert sent <= 2.0 / PARTIAL_INTERVAL_S + BURST


def test_packets_that_come_a_little_late_and_early_do_not_wait() -> None:
    board = PartialBoard()
    for number, late_s in enumerate((0.0, 0.02, 0.0, 0.029, 0.0, 0.0)):
        board.put(partial(str(number)))
        at_s = 10.0 + number * PARTIAL_INTERVAL_S + late_s
        assert [item.text for item in board.take_due(at_s)] == [str(number)]


def test_one_that_follows_closely_puts_off_none_after_it() -> None:
    """Else each would wait for most of a turn, for as long as speech goes on."""
    board = PartialBoard()
    for number, at_s in enumerate((10.0, 10.03, 10.23, 10.43, 10.63)):
        board.put(partial(str(number)))
        assert [item.text for item in board.take_due(at_s)] == [str(number)]


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
