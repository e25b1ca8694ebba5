"""What a decoder heard is told from what it made up."""

from __future__ import annotations

import pytest

from asr_engine.batch import guards

ACCOUNT = "I really liked that account of himself, better than anything else he said."


@pytest.mark.parametrize(
    ("before", "new"),
    [
        (ACCOUNT, " that account of himself, better than anything else he said."),
        (ACCOUNT, " I really liked, uh, that account of himself better than anything else."),
        ("你好，我們今天開會。", "我們今天開會"),
        ("Yes, I know.", " I know."),
        (ACCOUNT, ""),
    ],
)
def test_what_was_said_is_said_again(before: str, new: str) -> None:
    assert guards.says_again(before, before + new) == bool(new)


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
