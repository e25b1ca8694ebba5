"""Every exported file is one that the readers of others accept, with cues that can be read.

Readers: webvtt-py and pysubs2, which share no code with each other; for SubRip neither wrote it.
"""

from __future__ import annotations

import html
import io
import json
from dataclasses import dataclass
from itertools import pairwise

import pysubs2
import webvtt
from hypothesis import given, settings
from hypothesis import strategies as st

from asr_engine.results import Segment, Word, join_words
from transcription.formats import export
from transcription.formats.cues import LINE_WIDTH, MAX_CUE_MS, MIN_CUE_MS, width

NAMES = {"2": "Ann <& Sons>", "left": "李明"}
TAIL_MS = 500


@dataclass(frozen=True)
class Talk:
    segments: list[Segment]
    duration_ms: int


@st.composite
def talks(draw: st.DrawFn) -> Talk:
    """What a pass, an edit or a call of two channels leaves: words of any length at any pace, text
    without words, marks, pauses, speakers who talk at once."""
    word = st.text(alphabet="ab1,.-<>&{}\\您好。，！가é🙂", min_size=1, max_size=12)
    segments, start = [], 0
    for _ in range(draw(st.integers(0, 12))):
        start += draw(st.sampled_from([0, 40, 400, 3000]))
        speaker = draw(st.sampled_from([None, "1", "2", "left"]))
        texts = draw(st.lists(word, max_size=25))
        if not texts:
            segments.append(Segment(start, start + 900, "", speaker=speaker, mark="unclear"))
            start += 900
            continue
        pace = draw(st.sampled_from([20, 200, 700, 9000]))
        words = tuple(
            Word(text, start + i * pace, start + (i + 1) * pace, 0.5, has_space_before=i % 3 > 0)
            for i, text in enumerate(texts)
        )
        end = words[-1].end_ms
        is_edited = draw(st.booleans())
        text = " ".join(texts[::-1]) if is_edited else join_words(words)
        segments.append(Segment(start, end, text, words, speaker=speaker))
        # The next one may begin while this one speaks.
        start = draw(st.sampled_from([end, start + (end - start) // 2]))
    order = draw(st.permutations(segments)) if draw(st.booleans()) else segments
    duration = max((segment.end_ms for segment in segments), default=0) + TAIL_MS
    return Talk(order, duration)


def check_times(times: list[tuple[int, int]], duration_ms: int) -> None:
    assert all(before[0] <= after[0] for before, after in pairwise(times))
    for start, end in times:
        assert 0 <= start < end <= min(duration_ms, start + MAX_CUE_MS)
    for (start, end), (following, _) in pairwise([*times, (duration_ms, 0)]):
        assert end >= min(start + MIN_CUE_MS, following)


def check_lines(lines: list[str]) -> None:
    assert 1 <= len(lines) <= 2
    assert all(line.strip() and width(line) <= LINE_WIDTH for line in lines)


def letters(text: str) -> str:
    return "".join(c for c in text if c.isalnum())


@settings(deadline=None, max_examples=25)
@given(talks())
def test_every_vtt_can_be_read(talk: Talk) -> None:
    text = export("vtt", "<Talk> -->", talk.segments, names=NAMES, duration_ms=talk.duration_ms)
    captions = webvtt.from_string(text, strict=True).captions
    times = [(one.start_time.in_milliseconds(), one.end_time.in_milliseconds()) for one in captions]
    check_times(times, talk.duration_ms)
    shown = [html.unescape(one.text) for one in captions]
    for text_shown in shown:
        check_lines(text_shown.split("\n"))
    said = "".join(segment.text for segment in talk.segments)
    assert sorted(letters("".join(shown))) == sorted(letters(said))
    others = pysubs2.SSAFile.from_string(text, "vtt")
    assert [(one.start, one.end) for one in others] == times


@settings(deadline=None, max_examples=25)
@given(talks())
def test_every_srt_can_be_read(talk: Talk) -> None:
    text = export("srt", "Talk", talk.segments, names=NAMES, duration_ms=talk.duration_ms)
    blocks = [block.rstrip("\n").split("\n") for block in text.split("\n\n") if block]
    assert [block[0] for block in blocks] == [str(number + 1) for number in range(len(blocks))]
    for block in blocks:
        check_lines(block[2:])
    subtitles = pysubs2.SSAFile.from_string(text, "srt")
    times = [(one.start, one.end) for one in subtitles]
    assert len(times) == len(blocks)
    check_times(times, talk.duration_ms)
    if text:
        captions = webvtt.from_buffer(io.StringIO(text), format="srt")
        assert [one.start_time.in_milliseconds() for one in captions] == [time[0] for time in times]


@settings(deadline=None, max_examples=25)
@given(talks())
def test_every_text_and_json_holds_all_that_was_said(talk: Talk) -> None:
    in_order = sorted(talk.segments, key=lambda segment: segment.start_ms)
    said = letters("".join(segment.text for segment in in_order))
    data = json.loads(export("json", "", talk.segments, names=NAMES))
    assert letters("".join(one["text"] for one in data["segments"])) == said
    assert letters(data["text"]) == said
    for one, segment in zip(data["segments"], in_order, strict=True):
        assert (one["start_ms"], one["end_ms"]) == (segment.start_ms, segment.end_ms)
    unnamed = [segment for segment in in_order if not segment.mark and not segment.speaker]
    text = export("txt", "", unnamed)
    assert letters(text) == letters("".join(segment.text for segment in unnamed))
