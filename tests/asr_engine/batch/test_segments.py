"""Segments lie in the recording, in order, and end where people pause."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from asr_engine.audio import ms_to_samples
from asr_engine.batch.segments import LONG_MS, segments_of
from asr_engine.ports import Window, WindowSpan
from asr_engine.results import Segment, Word, join_words

START_MS = 60_000


def window(*spans: tuple[int, int], start_ms: int = START_MS, length_ms: int = 30_000) -> Window:
    """A window of spans (offset_ms, start_ms in the recording), all of it speech."""
    spans = spans or ((0, start_ms),)
    ends = [offset for offset, _ in spans[1:]] + [length_ms]
    return Window(
        start_sample=ms_to_samples(start_ms),
        samples=np.zeros(ms_to_samples(length_ms), np.float32),
        spans=tuple(
            WindowSpan(
                ms_to_samples(offset),
                ms_to_samples(at),
                ms_to_samples(offset + 400),
                ms_to_samples(end - 400),
            )
            for (offset, at), end in zip(spans, ends, strict=True)
        ),
    )


def heard(*words: tuple[str, int, int]) -> list[Segment]:
    """What a model gives: words with times from the start of the window."""
    timed = tuple(Word(text, START_MS + start, START_MS + end) for text, start, end in words)
    return [Segment(timed[0].start_ms, timed[-1].end_ms, join_words(timed), timed)]


def test_sentences_become_segments() -> None:
    found = segments_of(
        window(),
        heard(
            ("Good", 500, 700), ("morning.", 700, 1000), ("We", 1200, 1300), ("start.", 1300, 1600)
        ),
    )
    assert [segment.text for segment in found] == ["Good morning.", "We start."]
    assert (found[0].start_ms, found[1].end_ms) == (60_500, 61_600)


def test_titles_initials_and_numbers_end_no_sentence() -> None:
    words = ["Mr.", "J.", "Hale", "paid", "3.50", "today."]
    found = segments_of(
        window(), heard(*[(text, 500 + i * 300, 700 + i * 300) for i, text in enumerate(words)])
    )
    assert [segment.text for segment in found] == ["Mr. J. Hale paid 3.50 today."]


def test_a_pause_ends_a_segment() -> None:
    found = segments_of(window(), heard(("one", 500, 800), ("two", 2000, 2300)))
    assert [segment.text for segment in found] == ["one", "two"]


def test_words_after_left_out_silence_are_where_they_were_spoken() -> None:
    """The second span begins 5 s into the window and ten minutes into the recording."""
    joined = window((0, START_MS), (5_000, 600_000))
    found = segments_of(joined, heard(("before", 500, 900), ("after", 4_500, 5_800)))
    assert [segment.text for segment in found] == ["before", "after"]
    assert found[0].end_ms <= START_MS + 5_000
    # Stretched back over the silence by the alignment: it starts where speech does.
    assert 600_000 <= found[1].start_ms <= 600_400
    assert found[1].end_ms == 600_800


def test_a_first_word_heard_too_early_is_where_its_sentence_is() -> None:
    """The first span's speech ends at 4600 ms of the window, the second one's begins at 5400."""
    joined = window((0, START_MS), (5_000, 600_000))
    found = segments_of(
        joined, heard(("Before.", 3_000, 4_650), ("I", 4_650, 5_050), ("went.", 5_300, 6_000))
    )
    assert [segment.text for segment in found] == ["Before.", "I went."]
    assert 600_000 <= found[1].start_ms <= 600_400


def test_a_long_sentence_is_cut_at_a_clause() -> None:
    words = [(f"w{i}{',' if i == 25 else ''}", 400 + i * 400, 700 + i * 400) for i in range(60)]
    found = segments_of(window(), heard(*words))
    assert found[0].text.endswith("w25,")
    assert all(segment.end_ms - segment.start_ms <= LONG_MS for segment in found)


def test_nothing_heard_gives_nothing() -> None:
    assert segments_of(window(), []) == []


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b.", "c,", "d?"]), st.integers(0, 29_900), st.integers(0, 9000)
        ),
        min_size=1,
        max_size=40,
    )
)
def test_times_are_ordered_and_inside_whatever_the_alignment_says(
    raw: list[tuple[str, int, int]],
) -> None:
    words = sorted(
        ((text, start, start + length) for text, start, length in raw), key=lambda w: w[1]
    )
    joined = window((0, START_MS), (12_000, 100_000), (20_000, 900_000), length_ms=30_000)
    found = segments_of(joined, heard(*words))
    timed = [word for segment in found for word in segment.words]
    assert all(START_MS <= word.start_ms < word.end_ms <= 910_000 for word in timed)
    assert all(before.end_ms <= after.start_ms for before, after in pairwise(timed))
    assert all(before.end_ms <= after.start_ms for before, after in pairwise(found))
    assert [word.text for word in timed] == [text for text, _, _ in words]
