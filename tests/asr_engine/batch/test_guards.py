"""What a decoder heard is told from what it made up."""

from __future__ import annotations

import pytest

from asr_engine.batch import guards
from asr_engine.ports import Candidate

ACCOUNT = "I really liked that account of himself, better than anything else he said."


def said(text: str, log_probability: float = -0.3) -> Candidate:
    return Candidate(text, log_probability, 0.0, 1.0)


@pytest.mark.parametrize(
    ("before", "new"),
    [
        (ACCOUNT, " that account of himself, better than anything else he said."),
        (ACCOUNT, " I really liked, uh, that account of himself better than anything else."),
        ("你好，我們今天開會。", "我們今天開會"),
        ("Yes, I know.", " I know."),
        (ACCOUNT, ""),
        (ACCOUNT, " ..."),
        ("", ""),
    ],
)
def test_what_was_said_is_said_again(before: str, new: str) -> None:
    assert guards.says_again(before, before + new)
    assert not guards.goes_on(before, said(before + new))


@pytest.mark.parametrize(
    ("before", "new"),
    [
        (ACCOUNT, " His father died in miserable circumstances."),
        (ACCOUNT, " That account of his father was better, I think, by far and for all of us."),
        ("你好，我們今天開會。", "下午三點有空嗎"),
        ("", " Good morning."),
    ],
)
def test_something_new_is_said(before: str, new: str) -> None:
    assert not guards.says_again(before, before + new)
    assert guards.goes_on(before, said(before + new))


def test_what_goes_on_must_be_surer_than_what_stands_alone() -> None:
    new = said(ACCOUNT + " His father died.", log_probability=-1.2)
    assert guards.is_sound(new)
    assert not guards.goes_on(ACCOUNT, new)


@pytest.mark.parametrize(
    "text",
    [
        ACCOUNT + " It opens a menu." * 5,
        "It opens a menu. " * 5 + ACCOUNT,
        "Yes, I know. " + "no " * 15,
        "我們今天開會，" + "謝謝大家" * 5,
        "Thank you. Good-bye. " * 5,
    ],
)
def test_a_phrase_that_goes_round_is_a_loop(text: str) -> None:
    assert guards.is_loop(said(text))


@pytest.mark.parametrize(
    "text",
    [
        ACCOUNT,
        "No, no, no, no, no, no!",
        "It opens a menu. " * 4,
        "Ja, ja. " * 6,
        "對對對對對對，哈哈哈哈哈哈哈",
        "One two three four five one two three four five one two three four five.",
        "",
    ],
)
def test_what_people_do_repeat_is_none(text: str) -> None:
    assert not guards.is_loop(said(text))


@pytest.mark.parametrize(
    ("texts", "first"),
    [
        (["Sunday is the best part", "Sunday is the best part of the week."], 1),
        (["Sunday is the best part", "Sunday is the best part of the"], 0),
        (["Sunday is the best part.", "Sunday is the best part of the week."], 0),
        (["Sunday is the best", "Monday is the best part of the week."], 0),
        (["“At that high level", "At that level.", "At that high level, the air is pure.”"], 2),
        (["但已有多个地方", "但已有多个地方明确表态。"], 1),
    ],
    ids=["whole", "both broken off", "both whole", "another", "third", "Chinese"],
)
def test_a_whole_sentence_goes_before_one_that_is_broken_off(texts: list[str], first: int) -> None:
    candidates = [said(text, -0.1 * number) for number, text in enumerate(texts, start=1)]
    ordered = guards.best_first(reversed(candidates))
    assert ordered[0] is candidates[first]
    others = [candidate for candidate in candidates if candidate is not candidates[first]]
    assert ordered[1:] == others


def test_what_is_said_twice_goes_after_the_same_said_once() -> None:
    once, twice = said("He returned to it.", -0.4), said("He returned to it. He returned to it.")
    assert guards.best_first([twice, once]) == [once, twice]
    other = said("They returned to it.", -0.4)
    assert guards.best_first([twice, other]) == [twice, other]
    assert guards.said_twice("No, no, no! No, no, no!") is None
