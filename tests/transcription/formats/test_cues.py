"""Cues can be read: two lines, seven seconds, never across a long pause, never overlapping."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asr_engine.results import Segment, Word, join_words
from transcription.formats.cues import (
    LINE_WIDTH,
    LONG_PAUSE_MS,
    MAX_CUE_MS,
    MAX_LINES,
    make_cues,
    timed_words,
    width,
)


def spoken(text: str, *, start_ms: int = 0, word_ms: int = 300) -> Segment:
    """Words of equal length in a row."""
    words = tuple(
        Word(item, start_ms + i * word_ms, start_ms + (i + 1) * word_ms)
        for i, item in enumerate(text.split())
    )
    return Segment(words[0].start_ms, words[-1].end_ms, text, words)


def chinese(text: str, *, word_ms: int = 200) -> Segment:
    words = tuple(
        Word(item, i * word_ms, (i + 1) * word_ms, has_space_before=False)
        for i, item in enumerate(text)
    )
    return Segment(0, len(text) * word_ms, text, words)


def lines(segment: Segment) -> list[tuple[str, ...]]:
    return [cue.lines for cue in make_cues([segment])]


def test_a_short_sentence_is_one_line() -> None:
    assert lines(spoken("Good morning everybody.")) == [("Good morning everybody.",)]


def test_two_lines_are_balanced() -> None:
    (found,) = lines(spoken("We will now go through the figures of the second quarter."))
    assert found == ("We will now go through the", "figures of the second quarter.")


def test_a_long_sentence_is_cut_after_a_clause() -> None:
    text = "When the committee had heard the report in full, " + "it voted for it at once " * 3
    first, *_ = lines(spoken(text.strip()))
    assert " ".join(first).endswith("in full,")


def test_twenty_chinese_characters_fill_a_line() -> None:
    found = lines(chinese("是" * 75))
    assert all(len(line) <= 20 for cue in found for line in cue)
    assert "".join(line for cue in found for line in cue) == "是" * 75


def test_a_cue_never_crosses_a_long_pause() -> None:
    words = (Word("before", 0, 500), Word("after", 500 + LONG_PAUSE_MS, 2500))
    cues = make_cues([Segment(0, 2500, "before after", words)])
    assert [cue.lines for cue in cues] == [("before",), ("after",)]
    assert cues[0].end_ms < 2000


def test_a_short_cue_stays_until_the_next_or_a_second() -> None:
    cues = make_cues([spoken("Yes."), spoken("No.", start_ms=600), spoken("Why?", start_ms=9000)])
    assert [(cue.start_ms, cue.end_ms) for cue in cues] == [(0, 600), (600, 1600), (9000, 9300)]


def test_edited_text_is_spread_over_the_segments_time() -> None:
    """An edit changes the text; the words are those of the pass before it."""
    original = spoken("I like it")
    edited = Segment(1000, 3000, "I liked it very much indeed", original.words)
    words = list(timed_words(edited))
    assert join_words(words) == edited.text
    assert (words[0].start_ms, words[-1].end_ms) == (1000, 3000)


def test_edited_chinese_is_cut_between_characters() -> None:
    (cue,) = make_cues(
        [Segment(0, 4000, "今天我们讨论第二季度的财务数据和明年的计划,请大家看第一页。")]
    )
    assert len(cue.lines) == 2
    assert not cue.lines[1].startswith((",", "。"))


def test_a_word_wider_than_a_line_is_broken() -> None:
    found = lines(Segment(0, 5000, "https://" + "x" * 100))
    assert all(width(line) <= LINE_WIDTH for cue in found for line in cue)
    assert "".join("".join(cue) for cue in found) == "https://" + "x" * 100


@pytest.mark.parametrize("text", ["", " \n ", "\x00\x07"])
def test_a_segment_without_text_gives_no_cue(text: str) -> None:
    assert make_cues([Segment(0, 1000, text)]) == []


@given(
    st.lists(
        st.tuples(
            st.text(alphabet="abc,.是的。 <&", min_size=1, max_size=60),
            st.integers(20, 9000),
            st.integers(0, 5000),
        ),
        max_size=25,
    )
)
def test_every_cue_can_be_read(raw: list[tuple[str, int, int]]) -> None:
    position, segments = 0, []
    for text, length, gap in raw:
        segments.append(Segment(position + gap, position + gap + length, text))
        position += gap + length
    cues = make_cues(segments)
    for cue in cues:
        assert 0 <= cue.start_ms < cue.end_ms <= cue.start_ms + MAX_CUE_MS
        assert 1 <= len(cue.lines) <= MAX_LINES
        assert all(line and width(line) <= LINE_WIDTH for line in cue.lines)
    assert all(before.start_ms <= after.start_ms for before, after in pairwise(cues))
    shown = "".join("".join(line.split()) for cue in cues for line in cue.lines)
    assert shown == "".join("".join(text.split()) for text, _, _ in raw)
