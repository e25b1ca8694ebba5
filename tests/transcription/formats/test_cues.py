"""Cues can be read: two lines, seven seconds, never across a long pause, never overlapping."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
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


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        (
            "我们需要在下个星期之前完成第二季度的财务报表和预算工作然后请大家准时参加会议",
            ["我们", "需要", "星期", "完成", "季度", "财务", "报表", "预算", "准时", "参加"],
        ),
        ("這個項目需要在下個星期之前完成所以請大家準時參加會議", ["星期", "之前", "大家", "參加"]),
        (
            "今日は天気がとても良いので皆さんと一緒に散歩に行きましょう",
            ["今日は", "天気が", "散歩に"],
        ),
        ("วันนี้อากาศดีมากเราจะไปเดินเล่นที่สวนสาธารณะกับเพื่อนๆของเรา", ["วันนี้", "อากาศ", "เพื่อน"]),
    ],
    ids=["simplified", "traditional", "Japanese", "Thai"],
)
def test_no_line_ends_inside_a_word_of_a_script_without_spaces(
    text: str, phrases: list[str]
) -> None:
    for skipped in range(6):
        spoken_text = text[skipped:]
        shown = [line for cue in lines(chinese(spoken_text)) for line in cue]
        assert "".join(shown) == spoken_text
        for phrase in phrases:
            assert spoken_text.count(phrase) == sum(line.count(phrase) for line in shown)


def test_an_edited_line_is_cut_between_phrases_too() -> None:
    edited = replace(
        chinese("是" * 38), text="我们需要在下个星期之前完成第二季度的财务报表和预算工作"
    )
    shown = [line for cue in lines(edited) for line in cue]
    assert len(shown) > 1
    assert any("财务报表" in line or line.endswith("财务") for line in shown)


def test_a_pause_inside_a_phrase_is_a_place_to_cut() -> None:
    words = [*chinese("我们需要").words, *chinese("星期").words]
    late = [
        replace(word, start_ms=word.start_ms + 1200, end_ms=word.end_ms + 1200)
        for word in words[4:]
    ]
    late[1] = replace(late[1], start_ms=3000, end_ms=3200)
    found = list(timed_words(Segment(0, 3200, "我们需要星期", (*words[:4], *late))))
    assert [word.text for word in found][-2:] == ["星", "期"]


def test_a_cue_never_crosses_a_long_pause() -> None:
    words = (Word("before", 0, 500), Word("after", 500 + LONG_PAUSE_MS, 2500))
    cues = make_cues([Segment(0, 2500, "before after", words)])
    assert [cue.lines for cue in cues] == [("before",), ("after",)]
    assert cues[0].end_ms < 2000


def times(*segments: Segment, duration_ms: int | None = None) -> list[tuple[int, int]]:
    return [(cue.start_ms, cue.end_ms) for cue in make_cues(segments, duration_ms=duration_ms)]


def test_a_short_cue_stays_for_a_second_where_there_is_room() -> None:
    yes, no = spoken("Yes."), spoken("No.", start_ms=4000)
    assert times(yes, no) == [(0, 1000), (4000, 4300)]
    assert times(yes, no, duration_ms=4800) == [(0, 1000), (4000, 4800)]
    assert times(yes, no, duration_ms=9000) == [(0, 1000), (4000, 5000)]


def test_a_cue_that_was_said_fast_stays_until_it_is_read() -> None:
    fast = spoken("Good enough to feed a family of four, yes.", word_ms=100)
    last = spoken("Indeed.", start_ms=9000)
    assert times(fast, last)[0] == (0, 2100)
    assert times(replace(fast, end_ms=900), spoken("Oh.", start_ms=1700), last)[0] == (0, 1700)


def test_sentences_that_would_only_flash_share_a_cue() -> None:
    (cue,) = make_cues([spoken("Yes."), spoken("No.", start_ms=600), spoken("Why?", start_ms=950)])
    assert (cue.start_ms, cue.end_ms, cue.lines) == (0, 1250, ("Yes. No. Why?",))


def test_two_speakers_never_share_a_cue() -> None:
    alice, bob = (
        replace(spoken("Yes."), speaker="1"),
        replace(spoken("No.", start_ms=600), speaker="2"),
    )
    cues = make_cues([alice, bob])
    assert [(cue.speaker, cue.lines) for cue in cues] == [("1", ("Yes.",)), ("2", ("No.",))]
    assert cues[0].end_ms == 600


def test_who_is_talked_over_stays_on_the_screen() -> None:
    """On a call both speak at once: the second cue does not take the first away."""
    left = replace(spoken("one two three four five six seven eight"), speaker="left")
    right = replace(spoken("Indeed.", start_ms=900), speaker="right")
    assert times(left, right, duration_ms=60_000) == [(0, 2400), (900, 1900)]


def test_a_mark_is_no_subtitle() -> None:
    assert make_cues([Segment(0, 2000, "", mark="unclear")]) == []


def test_a_turn_begins_with_the_name_where_that_is_asked() -> None:
    turns = [
        replace(spoken("Good morning."), speaker="1"),
        replace(spoken("Hello.", start_ms=4000), speaker="1"),
        replace(spoken("Good day.", start_ms=8000), speaker="2"),
        spoken("Applause.", start_ms=12_000),
    ]
    names = {"1": "Zoë", "2": "Archibald Wolfeschlegelsteinhausen"}
    cues = make_cues(turns, name_of=lambda label: names[label])
    assert [cue.lines for cue in cues] == [
        ("Zoë: Good morning.",),
        ("Hello.",),
        ("Archibald Wolfeschle…: Good day.",),
        ("Applause.",),
    ]


def test_labels_with_one_name_are_one_person_whose_name_is_said_once() -> None:
    turns = [
        replace(spoken(text, start_ms=start_ms), speaker=speaker)
        for text, start_ms, speaker in (
            ("Shall we begin?", 0, "1"),
            ("I think so.", 3000, "2"),
            ("Not yet.", 6000, "3"),
        )
    ]
    names = {"1": "Ann", "2": "Ann", "3": "Bob"}
    cues = make_cues(turns, name_of=names.__getitem__)
    assert [cue.lines for cue in cues] == [
        ("Ann: Shall we begin?",),
        ("I think so.",),
        ("Bob: Not yet.",),
    ]


def test_a_name_that_leaves_no_room_moves_words_to_another_cue() -> None:
    turn = replace(spoken("the " * 19 + "end.", word_ms=200), speaker="1")
    (whole,) = make_cues([turn])
    named = make_cues([turn], name_of=lambda _: "Archibald")
    assert len(named) == 2
    assert all(width(line) <= LINE_WIDTH for cue in named for line in cue.lines)
    assert " ".join(" ".join(cue.lines) for cue in named) == "Archibald: " + " ".join(whole.lines)


def test_a_line_rather_ends_with_a_clause_than_in_the_middle() -> None:
    (found,) = lines(spoken("If it rains tomorrow, we shall of course meet indoors."))
    assert found == ("If it rains tomorrow,", "we shall of course meet indoors.")


def test_no_word_is_left_alone_for_the_next_cue() -> None:
    counts = [len(" ".join(cue).split()) for cue in lines(spoken("word " * 18, word_ms=200))]
    assert counts == [9, 9]


def test_a_cue_ends_at_a_breath_where_no_sign_ends_a_clause() -> None:
    before = spoken("one two three four five six seven eight nine ten eleven", word_ms=400)
    after = spoken("twelve thirteen fourteen fifteen sixteen", start_ms=4900, word_ms=400)
    both = Segment(0, after.end_ms, f"{before.text} {after.text}", before.words + after.words)
    assert lines(both) == [*lines(before), *lines(after)]


@pytest.mark.parametrize("sign", ["，", "。", "」", ",", "!"])
def test_no_line_begins_with_a_sign_that_ends_something(sign: str) -> None:
    """A model of Chinese gives signs as words of their own."""
    found = lines(chinese(("是" * 20 + sign) * 3, word_ms=100))
    assert not any(line.startswith(sign) for cue in found for line in cue)


def test_no_line_ends_with_a_bracket_that_opens_something() -> None:
    found = lines(chinese(("是" * 19 + "（好）") * 3, word_ms=100))
    assert not any(line.endswith("（") for cue in found for line in cue)


def test_edited_korean_keeps_its_words_whole() -> None:
    text = "오늘 회의에서는 이번 분기의 매출과 내년 계획에 대해 이야기하겠습니다"
    (found,) = lines(Segment(0, 6000, text))
    assert " ".join(found) == text


def test_letters_that_join_stay_joined() -> None:
    """The joiners of Persian, and of faces made of several, are no control characters."""
    text = "می\u200cخواهم 👩\u200d👧"
    assert lines(Segment(0, 3000, text)) == [(text,)]


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


@settings(deadline=None)
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
