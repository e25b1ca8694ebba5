"""Words of SentencePiece pieces."""

from __future__ import annotations

import pytest

from asr_engine.backends.cache_aware.words import WordBuilder
from asr_engine.results import join_words


def built(pieces: list[str]) -> WordBuilder:
    builder = WordBuilder()
    for index, piece in enumerate(pieces):
        builder.add(piece, 80 * index, 80 * index + 80, 0.5)
    return builder


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["▁hel", "lo", "▁world"], "hello world"),
        (["hel", "lo"], "hello"),
        (["▁", "hel", "lo", "▁", "world"], "hello world"),
        (["▁it", "'", "s", "▁so", ".", "▁Yes", "▁", "?"], "it's so. Yes?"),
        (["▁say", "▁(", "now", ")"], "say (now)"),
        (["▁为了", "重", "整", "智能"], "为了重整智能"),
        (["▁iPhone", "手机", "▁OK"], "iPhone手机 OK"),
        (["▁", "<0xE9>", "<0x87>", "<0x8D>", "整"], "重整"),
        (["▁good", "<en-US>", "▁day", "<unk>"], "good day"),
        (["<0xE9>", "▁word"], "word"),
        ([], ""),
    ],
)
def test_text_is_what_the_pieces_say(pieces: list[str], text: str) -> None:
    assert join_words(built(pieces).words()) == text


def test_only_the_last_word_may_still_change() -> None:
    builder = built(["▁one", "▁tw"])
    assert builder.stable_words == 1
    before = builder.words()
    builder.add("o", 200, 280, 0.5)
    assert builder.words()[0] == before[0]
    assert builder.words()[1].text == "two"


def test_a_full_stop_ends_the_word_before_and_the_next_piece_begins_one() -> None:
    builder = built(["▁one", "▁.", "▁two"])
    assert [word.text for word in builder.words()] == ["one.", "two"]


def test_times_and_confidence_come_from_the_tokens() -> None:
    builder = WordBuilder()
    builder.add("▁hel", 1000, 1080, 0.4)
    builder.add("lo", 1160, 1240, 0.8)
    builder.add("▁you", 1400, 1480, None)
    builder.add("▁there", 2000, 2080, 1.0)
    first, second, third = builder.words()
    assert (first.start_ms, first.end_ms) == (1000, 1400), "it lasts until the next one"
    assert first.confidence == pytest.approx(0.6)
    assert (second.start_ms, second.end_ms) == (1400, 1480), "a pause follows"
    assert second.confidence is None
    assert (third.start_ms, third.end_ms) == (2000, 2080)


def test_chinese_words_stand_without_spaces_and_have_times_of_their_own() -> None:
    words = built(["▁为了", "重整"]).words()
    assert [(word.text, word.has_space_before) for word in words] == [
        ("为了", True),
        ("重整", False),
    ]
    assert words[1].start_ms == 80
