"""Turns from voices, and segments divided among the speakers of turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from asr_engine.diarisation.port import Turn, Voice
from asr_engine.results import Segment, Word, join_words

JOIN_MS: Final = 500
"""A speaker who pauses for less than this has not ended the turn."""
REACH_MS: Final = 2000
"""Words that nobody was heard to speak belong to the nearest turn within this."""
ISLAND_MS: Final = 400
"""A change of speakers for less than this, inside another's words, is a slip of the ear."""


def turns_of(voices: Sequence[Voice], found: NDArray[np.intp]) -> list[Turn]:
    """Turns in order of their start. `found` has a number for each voice's speaker."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for voice, number in zip(voices, found, strict=True):
        spans.setdefault(int(number), []).extend(voice.spans)
    joined = {number: _joined(sorted(held)) for number, held in spans.items() if held}
    by_entrance = sorted(joined, key=lambda number: joined[number][0])
    return sorted(
        (
            Turn(start, end, str(label))
            for label, number in enumerate(by_entrance, start=1)
            for start, end in joined[number]
        ),
        key=lambda turn: (turn.start_ms, turn.end_ms, turn.speaker),
    )


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start - joined[-1][1] < JOIN_MS:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def assign(segments: Sequence[Segment], turns: Sequence[Turn]) -> list[Segment]:
    """The same words in the same order, every segment with one speaker; "1" has the first words.

    A segment in which speakers change is divided between two words. One that has a speaker (its
    channel) keeps it, and so does one far from every turn keep none.
    """
    if not turns:
        return list(segments)
    clock = _Clock(turns)
    divided: list[Segment] = []
    for segment in segments:
        if segment.speaker is not None:
            divided.append(segment)
        elif not segment.words:
            speaker = clock.speaker(segment.start_ms, segment.end_ms)
            divided.append(replace(segment, speaker=speaker))
        else:
            divided += _divided(segment, clock)
    return _numbered(divided, {turn.speaker for turn in turns})


def _numbered(segments: list[Segment], labels: set[str]) -> list[Segment]:
    """With `labels` counted anew, in the order of their first words."""
    heard = (segment.speaker for segment in segments if segment.speaker in labels)
    numbers = {label: str(number) for number, label in enumerate(dict.fromkeys(heard), start=1)}
    return [
        replace(segment, speaker=numbers.get(segment.speaker or "", segment.speaker))
        for segment in segments
    ]


def _divided(segment: Segment, clock: _Clock) -> list[Segment]:
    speakers = [clock.speaker(word.start_ms, word.end_ms) for word in segment.words]
    _smooth(speakers, segment.words)
    if len(set(speakers)) == 1:
        return [replace(segment, speaker=speakers[0])]
    pairs = zip(speakers, segment.words, strict=True)
    parts = [
        (speaker, tuple(word for _, word in held))
        for speaker, held in groupby(pairs, key=itemgetter(0))
    ]
    last = len(parts) - 1
    ends = [words[-1].end_ms for _, words in parts[:-1]] + [segment.end_ms]
    return [
        replace(
            segment,
            speaker=speaker,
            words=words,
            text=join_words(words),
            start_ms=words[0].start_ms if number else segment.start_ms,
            end_ms=max(ends[number], words[0].start_ms + 1) if number < last else segment.end_ms,
        )
        for number, (speaker, words) in enumerate(parts)
    ]


def _smooth(speakers: list[str | None], words: Sequence[Word]) -> None:
    """Words of nobody go to who spoke before; islands of a moment to who speaks around them."""
    for number in range(1, len(speakers)):
        if speakers[number] is None:
            speakers[number] = speakers[number - 1]
    for number in range(len(speakers) - 2, -1, -1):
        if speakers[number] is None:
            speakers[number] = speakers[number + 1]
    start = 0
    runs = [(speaker, len(list(held))) for speaker, held in groupby(speakers)]
    for place, (_, length) in enumerate(runs):
        end = start + length
        if 0 < place < len(runs) - 1 and runs[place - 1][0] == runs[place + 1][0]:
            island_ms = words[end - 1].end_ms - words[start].start_ms
            if island_ms < ISLAND_MS:
                speakers[start:end] = [runs[place - 1][0]] * length
        start = end


class _Clock:
    """Who speaks at a time. Turns of one speaker do not overlap."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._starts = np.array([turn.start_ms for turn in turns])
        self._ends = np.array([turn.end_ms for turn in turns])
        self._labels: list[str] = [turn.speaker for turn in turns]

    def speaker(self, start_ms: int, end_ms: int) -> str | None:
        """Who speaks most of [start_ms, end_ms), else who spoke nearest to it, else nobody."""
        shared = np.minimum(self._ends, end_ms) - np.maximum(self._starts, start_ms)
        near = np.flatnonzero(shared > -REACH_MS)
        if not len(near):
            return None
        if shared[near].max() <= 0:
            return self._labels[int(near[int(shared[near].argmax())])]
        totals: dict[str, int] = {}
        for index in near[shared[near] > 0]:
            label = self._labels[index]
            totals[label] = totals.get(label, 0) + int(shared[index])
        return max(totals, key=lambda label: totals[label])
