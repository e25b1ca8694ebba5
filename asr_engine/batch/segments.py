"""From a window's words to the segments of a transcript: on the recording's clock, readable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from asr_engine.audio import ms_to_samples, samples_to_ms
from asr_engine.ports import Window, WindowSpan
from asr_engine.results import Segment, Word, join_words

PAUSE_MS: Final = 700
"""A silence this long between two words ends a segment."""
LONG_MS: Final = 12_000
"""A sentence longer than this is cut at its best place."""
LONG_TEXT: Final = 160
MIN_WORD_MS: Final = 20
LONGEST_WORD_MS: Final = 1_500
"""What a word covers at most, before its end: alignment stretches the word after a silence, or
after speech without a word, back over it."""
SLACK_MS: Final = 150
"""Voice activity notices speech this late, and its end this early."""

UNCLEAR: Final = "unclear"
MIN_UNCLEAR_MS: Final = 1_000
"""Speech shorter than this is not missed: it may have been a cough."""

SENTENCE_ENDS: Final = frozenset(".!?。！？…")
CLAUSE_ENDS: Final = frozenset(",;:，、；：")
ABBREVIATIONS: Final = frozenset({"mr.", "mrs.", "ms.", "dr.", "st.", "prof.", "vs.", "no."})


def segments_of(window: Window, heard: Sequence[Segment]) -> list[Segment]:
    """What a model heard in `window`, moved to the recording's clock and cut at sentences.

    The result is sorted and free of overlap; each segment lies within the window's audio. A channel
    that is heard on its own is the speaker.
    """
    result: list[Segment] = []
    floor_ms = samples_to_ms(window.start_sample)
    end_ms = samples_to_ms(window.end_sample)
    for segment in heard:
        words = _ordered(_placed(window, segment.words), floor_ms, end_ms)
        for part in _cut(words):
            result.append(
                replace(
                    segment,
                    start_ms=part[0].start_ms,
                    end_ms=part[-1].end_ms,
                    text=join_words(part),
                    words=tuple(part),
                    speaker=window.channel or segment.speaker,
                )
            )
            floor_ms = part[-1].end_ms
    return result


def unclear_segments(window: Window, start: int, end: int) -> list[Segment]:
    """A mark over the speech in samples [`start`, `end`) of a window's that could not be written
    down, where it lasts."""
    spoken = [
        (max(start, span.speech_start), min(end, span.speech_end), span)
        for span in window.spans
        if min(end, span.speech_end) > max(start, span.speech_start)
    ]
    if sum(last - first for first, last, _ in spoken) < ms_to_samples(MIN_UNCLEAR_MS):
        return []
    (first, _, first_span), (_, last, last_span) = spoken[0], spoken[-1]
    return [
        Segment(
            start_ms=samples_to_ms(first_span.start_sample + first - first_span.offset),
            end_ms=samples_to_ms(last_span.start_sample + last - last_span.offset),
            text="",
            speaker=window.channel,
            mark=UNCLEAR,
        )
    ]


def with_marks(segments: Sequence[Segment], marks: Sequence[Segment]) -> Iterator[Segment]:
    """Both in order; a mark gives way to words, and is left out where they leave it no room."""
    reached = 0
    waiting = list(marks)
    for segment in segments:
        while waiting and waiting[0].start_ms < segment.start_ms:
            yield from _between(reached, waiting.pop(0), segment.start_ms)
        yield segment
        reached = segment.end_ms
    for mark in waiting:
        yield from _between(reached, mark, mark.end_ms)


def _between(start_ms: int, mark: Segment, end_ms: int) -> Iterator[Segment]:
    kept = replace(mark, start_ms=max(start_ms, mark.start_ms), end_ms=min(mark.end_ms, end_ms))
    if kept.end_ms - kept.start_ms >= MIN_UNCLEAR_MS:
        yield kept


def _placed(window: Window, words: Sequence[Word]) -> Iterator[Word]:
    """Each word where its span of the window lies in the recording, and in that span's speech.

    A word reaches out of its span's speech by SLACK_MS at most.
    """
    spans = window.spans or (WindowSpan(0, window.start_sample, 0, len(window.samples)),)
    ends = [span.offset for span in spans[1:]] + [len(window.samples)]
    slack = ms_to_samples(SLACK_MS)
    for word in words:
        end = ms_to_samples(word.end_ms) - window.start_sample
        start = ms_to_samples(max(word.start_ms, word.end_ms - LONGEST_WORD_MS))
        start -= window.start_sample
        index = _span_of(spans, end)
        span = spans[index]
        first = max(span.offset, span.speech_start - slack)
        last = min(ends[index], span.speech_end + slack)
        to_recording = span.start_sample - span.offset
        yield replace(
            word,
            start_ms=samples_to_ms(min(max(start, first), last) + to_recording),
            end_ms=samples_to_ms(min(max(end, first), last) + to_recording),
        )


def _span_of(spans: Sequence[WindowSpan], end: int) -> int:
    """Index of the span that a word with this end belongs to.

    Ends are nearly exact, unlike beginnings (a word after silence is stretched back over it): one
    that lies nearer to the next span's speech than to its own is a first word heard too early.
    """
    index = 0
    for number, (before, span) in enumerate(pairwise(spans), start=1):
        if end > (before.speech_end + span.speech_start) / 2:
            index = number
    return index


def _ordered(words: Iterator[Word], floor_ms: int, end_ms: int) -> list[Word]:
    """Words that start in order, last at least MIN_WORD_MS and stay in [floor_ms, end_ms].

    Where alignment gives no room at the end of a window, the words share the last milliseconds.
    """
    ordered: list[Word] = []
    for word in words:
        start = max(word.start_ms, floor_ms)
        end = max(word.end_ms, start + MIN_WORD_MS)
        ordered.append(replace(word, start_ms=start, end_ms=end))
        floor_ms = end
    limit = end_ms
    for index in range(len(ordered) - 1, -1, -1):
        word = ordered[index]
        if word.end_ms <= limit:
            break
        start = max(0, min(word.start_ms, limit - MIN_WORD_MS))
        ordered[index] = replace(word, start_ms=start, end_ms=limit)
        limit = start
    return [word for word in ordered if word.end_ms > word.start_ms]


def _cut(words: list[Word]) -> Iterator[list[Word]]:
    """Cut at pauses and ends of sentences, and long sentences at their best places."""
    part: list[Word] = []
    for index, word in enumerate(words):
        part.append(word)
        following = words[index + 1] if index + 1 < len(words) else None
        if following is None or _ends_segment(word, following):
            yield from _halved(part)
            part = []


def _ends_segment(word: Word, following: Word) -> bool:
    if following.start_ms - word.end_ms >= PAUSE_MS:
        return True
    text = word.text.rstrip("\"'”’)]")
    if not text or text[-1] not in SENTENCE_ENDS or text.lower() in ABBREVIATIONS:
        return False
    # "J. Smith", "3.5": a single letter or a digit before the point ends no sentence.
    return not (text[-1] == "." and (len(text) == 2 or not following.has_space_before))


def _halved(part: list[Word]) -> Iterator[list[Word]]:
    """`part`, or its pieces where it is too long: at a clause, else at the longest pause."""
    text_length = sum(len(word.text) + word.has_space_before for word in part)
    is_long = part[-1].end_ms - part[0].start_ms > LONG_MS or text_length > LONG_TEXT
    if not is_long or len(part) < 2:
        yield part
        return
    quarter = max(1, len(part) // 4)
    places = range(quarter, max(quarter + 1, len(part) - quarter + 1))

    def worth(index: int) -> tuple[bool, int, int]:
        before, after = part[index - 1], part[index]
        ends_clause = before.text[-1:] in CLAUSE_ENDS
        return ends_clause, after.start_ms - before.end_ms, -abs(index - len(part) // 2)

    best = max((index for index in places if index < len(part)), key=worth)
    yield from _halved(part[:best])
    yield from _halved(part[best:])
