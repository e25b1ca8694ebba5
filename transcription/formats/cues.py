"""Segments to cues: what fits on a screen and can be read while it is shown.

At most two lines of 42 columns (20 Chinese, Japanese or Korean characters) of one speaker, at most
seven seconds, never across a long pause. Cues are in order; two are on the screen at once only
where two speakers talk at once.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from asr_engine.results import Segment, Word, join_words
from transcription.formats.phrases import in_phrases
from transcription.formats.transcript import BREATH_MS, clean_text, is_spaced

MAX_LINES: Final = 2
LINE_WIDTH: Final = 420
NARROW_WIDTH: Final = 10
WIDE_WIDTH: Final = 21
"""Widths in tenths of a column: 42 narrow or 20 wide characters fill a line."""
LONGEST_PHRASE: Final = 10
"""Characters of a script without spaces: half a line."""
NAME_WIDTH: Final = 210
"""A speaker's longer name is shortened."""
MAX_CUE_MS: Final = 7_000
MIN_CUE_MS: Final = 1_000
"""A shorter cue stays this long if nothing follows it sooner, or becomes one with a neighbour."""
READING_WIDTH: Final = 200
"""What people read in a second: 20 narrow or 9 wide characters. A cue that was said faster stays
until it is read, if nothing follows it sooner."""
LONG_PAUSE_MS: Final = 1_500

SENTENCE_ENDS: Final = ".!?。！？…"
CLAUSE_ENDS: Final = ",;:，、；："
SENTENCE_WORTH: Final = 120
CLAUSE_WORTH: Final = 60
"""Tenths of a column by which a line may be wider to end where a sentence, or a clause, does."""

_OPENING: Final = frozenset({"Ps", "Pi"})
_UNSPACED: Final = "\u2e80-\u312f\u31a0-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U000323af"
_PIECE: Final = re.compile(f"[{_UNSPACED}]|[^{_UNSPACED}]+")
"""Of a token: a character of a script without spaces, or a run of others."""


@dataclass(frozen=True, slots=True)
class Cue:
    """One or two lines of `speaker` (a label), shown from `start_ms` to `end_ms`."""

    start_ms: int
    end_ms: int
    lines: tuple[str, ...]
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class _Part:
    """The words of a cue."""

    words: tuple[Word, ...]
    speaker: str | None

    @property
    def start_ms(self) -> int:
        return self.words[0].start_ms

    @property
    def end_ms(self) -> int:
        return max(self.start_ms + 1, *(word.end_ms for word in self.words))


def make_cues(
    segments: Iterable[Segment],
    *,
    duration_ms: int | None = None,
    name_of: Callable[[str], str] | None = None,
) -> list[Cue]:
    """Cues in the order of their starts, none beyond `duration_ms`. What has no text gives none.

    With `name_of`, which gives a speaker's label a name, each turn begins with it.
    """
    parts = [
        _Part(tuple(words), segment.speaker)
        for segment in segments
        for words in _cut(list(timed_words(segment)))
    ]
    parts = _without_flashes(_in_order(parts))
    if name_of is not None:
        parts = _in_order(_with_names(parts, name_of))
    return _timed(parts, duration_ms)


def timed_words(segment: Segment) -> Iterator[Word]:
    """The segment's words; where its text was edited, its words spread over its time.

    None is wider than a line, and none is a comma or a full stop that could begin one. What belongs
    together in a script without spaces is one word.
    """
    text = clean_text(segment.text)
    words: Sequence[Word] = segment.words
    if not words or clean_text(join_words(words)) != text:
        words = _spread(_split(text), segment.start_ms, segment.end_ms)
    phrases = in_phrases(
        [replace(word, text=text) for word in words if (text := clean_text(word.text))],
        longest=LONGEST_PHRASE,
    )
    for word in _held_together(phrases):
        if width(word.text) > LINE_WIDTH:
            yield from _spread(_slices(word), word.start_ms, word.end_ms)
        else:
            yield word


def width(text: str) -> int:
    """Tenths of a column that `text` takes."""
    if text.isascii():
        return NARROW_WIDTH * len(text)
    return sum(_width_of(character) for character in text)


def wrap(words: Sequence[Word]) -> tuple[str, ...]:
    """One line where it fits, else two of about equal width, rather cut at the end of a clause."""
    whole = join_words(words)
    if width(whole) <= LINE_WIDTH:
        return (whole,)
    spaces = [NARROW_WIDTH if word.has_space_before else 0 for word in words]
    widths = [width(word.text) for word in words]
    total = sum(spaces[1:]) + sum(widths)
    upper, best, cut = widths[0], (True, total, 0), 0
    for index in range(1, len(words)):
        widest = max(upper, total - upper - spaces[index])
        rank = (widest > LINE_WIDTH, widest - _worth(words[index - 1]), upper)
        if index == 1 or rank < best:
            best, cut = rank, index
        upper += spaces[index] + widths[index]
    return (join_words(words[:cut]), join_words(words[cut:]))


def _width_of(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return WIDE_WIDTH if unicodedata.east_asian_width(character) in "WF" else NARROW_WIDTH


def _worth(word: Word) -> int:
    """Of a cut after `word`."""
    if word.text[-1:] in SENTENCE_ENDS:
        return SENTENCE_WORTH
    return CLAUSE_WORTH if word.text[-1:] in CLAUSE_ENDS else 0


# Words --------------------------------------------------------------------------------------------


def _split(text: str) -> list[Word]:
    """Words of `text` without times: at spaces, and around characters of scripts without them."""
    return [
        Word(piece, 0, 0, has_space_before=index == 0)
        for token in text.split()
        for index, piece in enumerate(_PIECE.findall(token))
    ]


def _held_together(words: Iterable[Word]) -> Iterator[Word]:
    """Words with the signs that belong to them: a comma with what it follows, a bracket with what
    it opens. The first may follow those of another segment."""
    waiting: Word | None = None
    for word in words:
        if waiting is None:
            waiting = replace(word, has_space_before=True)
        elif not word.has_space_before and _belongs_together(waiting.text, word.text):
            text, end_ms = waiting.text + word.text, max(waiting.end_ms, word.end_ms)
            waiting = replace(waiting, text=text, end_ms=end_ms)
        else:
            yield waiting
            waiting = word
    if waiting is not None:
        yield waiting


def _belongs_together(before: str, after: str) -> bool:
    first, is_opening = after[0], unicodedata.category(before[-1]) in _OPENING
    is_sign = unicodedata.category(first)[0] == "P" and unicodedata.category(first) not in _OPENING
    return (is_sign or is_opening) and width(before + after) <= LINE_WIDTH


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


# Parts --------------------------------------------------------------------------------------------


def _cut(words: list[Word]) -> Iterator[list[Word]]:
    """Runs of words that each fit a cue, cut where a reader expects it."""
    while words:
        count = _fitting(words)
        if count < len(words):
            count = _best_cut(words, count)
        yield words[:count]
        words = words[count:]


def _fitting(words: list[Word]) -> int:
    """How many leading words a cue can hold; at least one."""
    count = max(1, _filling(words))
    for index in range(1, count):
        if _pause_before(words, index) >= LONG_PAUSE_MS:
            return index
        if words[index].end_ms - words[0].start_ms > MAX_CUE_MS:
            return index
    return count


def _filling(words: Sequence[Word]) -> int:
    """How many leading words two lines hold: filling the upper one first is as good as any other
    cut."""
    lines, used = 1, 0
    for index, word in enumerate(words):
        space = NARROW_WIDTH if used and word.has_space_before else 0
        wide = width(word.text)
        used += space + wide
        if used > LINE_WIDTH:
            lines, used = lines + 1, wide
        if lines > MAX_LINES:
            return index
    return len(words)


def _best_cut(words: list[Word], count: int) -> int:
    """Where to end a cue that could hold `count` words, in its second half: after a sentence, a
    clause, at a breath, else so that no single word is left for the next."""
    if _pause_before(words, count) >= LONG_PAUSE_MS:
        return count
    places = range(count, max(1, count // 2) - 1, -1)
    for ends in (SENTENCE_ENDS, CLAUSE_ENDS):
        for index in places:
            if words[index - 1].text[-1:] in ends:
                return index
    breath = max(places, key=lambda index: _pause_before(words, index))
    if _pause_before(words, breath) >= BREATH_MS:
        return breath
    return min(count, max((len(words) + 1) // 2, places[-1]))


def _pause_before(words: Sequence[Word], index: int) -> int:
    return words[index].start_ms - words[index - 1].end_ms


def _in_order(parts: Iterable[_Part]) -> list[_Part]:
    return sorted(parts, key=lambda part: part.start_ms)


def _without_flashes(parts: Sequence[_Part]) -> list[_Part]:
    """`parts` with those that would only flash joined to a neighbour of the same speaker."""
    joined: list[_Part] = []
    for part, following in zip(parts, [*parts[1:], None], strict=False):
        before = joined[-1] if joined else None
        if before is not None and (_flashes(before, part) or _flashes(part, following)):
            both = _both(before, part)
            if both is not None:
                joined[-1] = both
                continue
        joined.append(part)
    return joined


def _flashes(part: _Part, following: _Part | None) -> bool:
    """Whether another cue comes before this one was there for MIN_CUE_MS."""
    return following is not None and following.start_ms - part.start_ms < MIN_CUE_MS


def _both(part: _Part, following: _Part) -> _Part | None:
    """Two parts as one, if a cue may hold them."""
    first, *others = following.words
    pause_ms = following.start_ms - part.end_ms
    has_space = first.has_space_before and is_spaced(part.words[-1].text, first.text, pause_ms)
    both = _Part((*part.words, replace(first, has_space_before=has_space), *others), part.speaker)
    is_one_turn = part.speaker == following.speaker and 0 <= pause_ms < LONG_PAUSE_MS
    is_short = both.end_ms - both.start_ms <= MAX_CUE_MS
    return both if is_one_turn and is_short and _filling(both.words) == len(both.words) else None


def _with_names(parts: Iterable[_Part], name_of: Callable[[str], str]) -> Iterator[_Part]:
    """`parts` with a name before each that somebody else says, cut again where that needs it. Who
    has the same name is the same, whatever the labels."""
    last = None
    for part in parts:
        called = None if part.speaker is None else name_of(part.speaker)
        if called is None or called == last:
            yield part
            continue
        last = called
        name = _split(f"{_shortened(called)}:")
        first, *others = part.words
        words = [
            *_spread(name, part.start_ms, part.start_ms),
            replace(first, has_space_before=True),
            *others,
        ]
        for piece in _cut(words):
            yield _Part(tuple(piece), part.speaker)


def _shortened(name: str) -> str:
    if width(name) <= NAME_WIDTH:
        return name
    while width(name) > NAME_WIDTH - NARROW_WIDTH:
        name = name[:-1]
    return f"{name.rstrip()}…"


# Times --------------------------------------------------------------------------------------------


def _timed(parts: Sequence[_Part], duration_ms: int | None) -> list[Cue]:
    """Cues of parts in order: each stays until it is read where there is room, MAX_CUE_MS at most,
    and ends before its speaker says the next."""
    cues: list[Cue] = []
    next_ms, next_of_speaker = duration_ms, dict[str | None, int]()
    for part in reversed(parts):
        start, end = part.start_ms, part.end_ms
        lines = wrap(part.words)
        if next_ms is not None:
            read_ms = sum(map(width, lines)) * 1000 // READING_WIDTH
            end = max(end, min(start + max(MIN_CUE_MS, read_ms), next_ms))
        end = min(end, start + MAX_CUE_MS, next_of_speaker.get(part.speaker, end))
        next_ms = next_of_speaker[part.speaker] = start
        if duration_ms is not None:
            start, end = min(start, max(0, duration_ms - 1)), min(end, duration_ms)
        cues.append(Cue(start, max(end, start + 1), lines, part.speaker))
    return cues[::-1]
