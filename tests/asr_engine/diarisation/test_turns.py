"""Words keep their order and their text; each segment has one speaker."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from asr_engine.diarisation.port import Hearing, Turn, Voice
from asr_engine.diarisation.turns import assign, turns_of
from asr_engine.results import Segment, Word

PRINT = np.ones(4, np.float32) / 2


def segment(*texts: str, start_ms: int = 0, word_ms: int = 500) -> Segment:
    words = tuple(
        Word(text, start_ms + place * word_ms, start_ms + (place + 1) * word_ms)
        for place, text in enumerate(texts)
    )
    return Segment(start_ms, words[-1].end_ms, " ".join(texts), words)


def test_segment_is_divided_where_speakers_change() -> None:
    heard = assign(
        [segment("good", "morning", "hello", "there")],
        [Turn(0, 1000, "1"), Turn(1000, 2000, "2")],
    )
    assert [(part.speaker, part.text) for part in heard] == [
        ("1", "good morning"),
        ("2", "hello there"),
    ]
    assert [(part.start_ms, part.end_ms) for part in heard] == [(0, 1000), (1000, 2000)]


def test_labels_count_in_the_order_of_first_words() -> None:
    said = [segment("first", start_ms=2000), segment("second", start_ms=5000)]
    heard = assign(said, [Turn(0, 800, "1"), Turn(2000, 3000, "3"), Turn(5000, 6000, "1")])
    assert [part.speaker for part in heard] == ["1", "2"]


def test_slip_of_the_ear_divides_nothing() -> None:
    turns = [Turn(0, 300, "1"), Turn(300, 600, "2"), Turn(600, 900, "1")]
    heard = assign([segment("one", "two", "three", word_ms=300)], turns)
    assert [part.speaker for part in heard] == ["1"]


def test_words_between_turns_belong_to_the_nearest() -> None:
    heard = assign([segment("late", start_ms=1500)], [Turn(0, 1000, "1"), Turn(3000, 4000, "2")])
    assert heard[0].speaker == "1"


def test_words_far_from_every_turn_have_no_speaker() -> None:
    heard = assign([segment("alone", start_ms=60_000)], [Turn(0, 1000, "1")])
    assert heard == [segment("alone", start_ms=60_000)]


def test_channel_of_a_call_is_kept() -> None:
    said = Segment(0, 500, "hello", speaker="left")
    assert assign([said], [Turn(0, 500, "1")]) == [said]


def test_segment_without_words_is_whole() -> None:
    said = [segment("one", word_ms=300), Segment(200, 900, "", mark="unclear")]
    heard = assign(said, [Turn(0, 300, "1"), Turn(300, 900, "2")])
    assert [(part.mark, part.speaker) for part in heard] == [(None, "1"), ("unclear", "2")]


@given(
    st.lists(st.integers(1, 900), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 9000), st.integers(1, 3000), st.sampled_from("123"))),
)
def test_no_word_is_lost_moved_or_doubled(
    lengths: list[int], spans: list[tuple[int, int, str]]
) -> None:
    ends = [int(end) for end in np.cumsum(lengths)]
    words = tuple(
        Word(f"w{place}", end - length, end)
        for place, (end, length) in enumerate(zip(ends, lengths, strict=True))
    )
    said = Segment(0, ends[-1], " ".join(word.text for word in words), words)
    heard = assign([said], [Turn(start, start + length, who) for start, length, who in spans])
    assert tuple(word for part in heard for word in part.words) == words
    assert " ".join(part.text for part in heard) == said.text
    assert heard[0].start_ms == said.start_ms
    assert heard[-1].end_ms == said.end_ms
    assert all(part.start_ms < part.end_ms for part in heard)


def test_labels_count_in_order_of_entrance() -> None:
    voices = [Voice(0, ((900, 1800),), 900, PRINT), Voice(0, ((0, 800),), 800, PRINT)]
    assert turns_of(voices, np.array([0, 1])) == [Turn(0, 800, "1"), Turn(900, 1800, "2")]


def test_short_pause_does_not_end_a_turn() -> None:
    voices = [Voice(0, ((0, 1000), (1300, 2000)), 900, PRINT), Voice(1, ((5000, 6000),), 1, PRINT)]
    assert turns_of(voices, np.array([0, 0])) == [Turn(0, 2000, "1"), Turn(5000, 6000, "1")]


def test_hearing_goes_through_json() -> None:
    voice = Voice(3, ((10, 20), (30, 40)), 20, PRINT)
    hearing = Hearing(480_000, 4, [voice], [Turn(1, 2, "1")])
    again = Hearing.from_json(hearing.as_json())
    assert (again.next_sample, again.windows, again.turns) == (480_000, 4, hearing.turns)
    assert again.voices[0].spans == voice.spans
    assert np.allclose(again.voices[0].voiceprint, PRINT)
