"""Segments to cues: what fits on a screen and can be read while it is shown.

At most two lines of 42 columns (20 Chinese, Japanese or Korean characters), at most seven seconds,
never across a long pause, never over a cue's neighbour.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from asr_engine.results import Segment, Word, join_words

MAX_LINES: Final = 2
LINE_WIDTH: Final = 420
NARROW_WIDTH: Final = 10
WIDE_WIDTH: Final = 21
"""Widths in tenths of a column: 42 narrow or 20 wide characters fill a line."""
MAX_CUE_MS: Final = 7_000
MIN_CUE_MS: Final = 1_000
"""A shorter cue stays this long if nothing follows it sooner."""
LONG_PAUSE_MS: Final = 1_500

SENTENCE_ENDS: Final = ".!?。！？…"
CLAUSE_ENDS: Final = ",;:，、；："


@dataclass(frozen=True, slots=True)
class Cue:
    """One or two lines, shown from `start_ms` to `end_ms`."""

    start_ms: int
    end_ms: int
    lines: tuple[str, ...]


def make_cues(segments: Iterable[Segment]) -> list[Cue]:
    """Cues in order, without overlap. Segments without text give none."""
    parts = [part for segment in segments for part in _parts(list(timed_words(segment)))]
    cues = [
        Cue(part[0].start_ms, max(part[-1].end_ms, part[0].start_ms + 1), wrap(part))
        for part in parts
    ]
    cues = [_not_into(cue, following) for cue, following in pairwise([*cues, None]) if cue]
    return [_at_most(cue) for cue in cues]


def clean_text(text: str) -> str:
    """One line of printable text: no control characters, no runs of white space."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def timed_words(segment: Segment) -> Iterator[Word]:
    """The segment's words; where its text was edited, its words spread over its time.

    None is wider than a line.
    """
    text = clean_text(segment.text)
    words: Sequence[Word] = segment.words
    if not words or clean_text(join_words(list(words))) != text:
        words = _spread(_split(text), segment.start_ms, segment.end_ms)
    for word in (replace(word, text=clean_text(word.text)) for word in words):
        if width(word.text) > LINE_WIDTH:
            yield from _spread(_slices(word), word.start_ms, word.end_ms)
        elif word.text:
            yield word


def width(text: str) -> int:
    """Tenths of a column that `text` takes."""
    return sum(WIDE_WIDTH if is_wide(character) else NARROW_WIDTH for character in text)


def wrap(words: Sequence[Word]) -> tuple[str, ...]:
    """One line where it fits, else two of most equal width (the upper not wider if possible)."""
    whole = join_words(list(words))
    if width(whole) <= LINE_WIDTH:
        return (whole,)
    spaces = [NARROW_WIDTH if word.has_space_before else 0 for word in words]
    widths = [width(word.text) for word in words]
    total = sum(spaces[1:]) + sum(widths)
    upper, best, cut = widths[0], (total, 0), 0
    for index in range(1, len(words)):
        rank = (max(upper, total - upper - spaces[index]), upper)
        if index == 1 or rank < best:
            best, cut = rank, index
        upper += spaces[index] + widths[index]
    return (join_words(list(words[:cut])), join_words(list(words[cut:])))


def is_wide(character: str) -> bool:
    """Chinese, Japanese, Korean and full-width characters; False for no character."""
    return bool(character) and unicodedata.east_asian_width(character) in "WF"


def _split(text: str) -> list[Word]:
    """Words of `text` without times: at spaces, and before every wide character."""
    words = []
    for token in text.split():
        pieces = re.findall(r"[^\W]|\S", token) if any(map(is_wide, token)) else [token]
        joined: list[str] = []
        for piece in pieces:
            if joined and not (is_wide(piece) and piece.isalnum()):
                joined[-1] += piece
            else:
                joined.append(piece)
        words += [
            Word(piece, 0, 0, has_space_before=index == 0) for index, piece in enumerate(joined)
        ]
    return words


def _slices(word: Word) -> list[Word]:
    """A word that no line holds, in pieces that do."""
    pieces: list[str] = [""]
    for character in word.text:
        if width(pieces[-1] + character) > LINE_WIDTH:
            pieces.append("")
        pieces[-1] += character
    return [
        replace(word, text=piece, has_space_before=word.has_space_before and index == 0)
        for index, piece in enumerate(pieces)
    ]


def _spread(words: list[Word], start_ms: int, end_ms: int) -> list[Word]:
    """Give words times in proportion to their length."""
    total = sum(len(word.text) for word in words) or 1
    spread, passed = [], 0
    for word in words:
        begin = start_ms + (end_ms - start_ms) * passed // total
        passed += len(word.text)
        end = start_ms + (end_ms - start_ms) * passed // total
        spread.append(replace(word, start_ms=begin, end_ms=end))
    return spread


def _parts(words: list[Word]) -> Iterator[list[Word]]:
    """Runs of words that each fit a cue, cut at the end of a clause where there is one."""
    while words:
        count = _fitting(words)
        if count < len(words):
            count = _best_cut(words, count)
        yield words[:count]
        words = words[count:]


def _fitting(words: list[Word]) -> int:
    """How many leading words a cue can hold; at least one."""
    count = 1
    while count < len(words):
        word = words[count]
        if word.start_ms - words[count - 1].end_ms >= LONG_PAUSE_MS:
            break
        if word.end_ms - words[0].start_ms > MAX_CUE_MS:
            break
        if not _fits(words[: count + 1]):
            break
        count += 1
    return count


def _fits(words: Sequence[Word]) -> bool:
    """Whether two lines hold them: filling the upper one first is as good as any other cut."""
    lines, used = 1, 0
    for word in words:
        space = NARROW_WIDTH if used and word.has_space_before else 0
        used += space + width(word.text)
        if used > LINE_WIDTH:
            lines, used = lines + 1, width(word.text)
    return lines <= MAX_LINES


def _best_cut(words: list[Word], count: int) -> int:
    """Where to end a cue that could hold `count` words: after a sentence or a clause, if its
    second half has one."""
    if words[count].start_ms - words[count - 1].end_ms >= LONG_PAUSE_MS:
        return count
    for ends in (SENTENCE_ENDS, CLAUSE_ENDS):
        for index in range(count, max(1, count // 2) - 1, -1):
            if words[index - 1].text[-1:] in ends:
                return index
    return count


def _not_into(cue: Cue, following: Cue | None) -> Cue:
    """A cue that ends before the next begins, and stays MIN_CUE_MS where there is room."""
    if following is None:
        return cue
    wanted = max(cue.end_ms, cue.start_ms + MIN_CUE_MS)
    return replace(cue, end_ms=max(min(wanted, following.start_ms), cue.start_ms + 1))


def _at_most(cue: Cue) -> Cue:
    return replace(cue, end_ms=min(cue.end_ms, cue.start_ms + MAX_CUE_MS))
