"""LocalAgreement-2: what two successive decodings of a growing buffer agree on stays.

Pure: knows units of text and their tokens, no audio and no model. After Macháček, Dabre and Bojar,
"Turning Whisper into Real-Time Transcription System" (2023); unlike theirs, the decoder is made to
continue the agreed tokens, so no text has to be merged at a seam.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from asr_engine.results import Word

UNSPACED_LANGUAGES: Final = frozenset({"zh", "yue", "ja", "th", "lo", "my", "km", "bo"})
"""Languages written without spaces between words: units are characters, not words."""

SENTENCE_ENDS: Final = frozenset(".?!。？！")

MAX_REPEATS: Final = 4
"""Times that a phrase of any length may be said in a row: people do say "no, no, no, no"."""
MAX_PHRASE_UNITS: Final = 12


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest piece of text that can be agreed on, with the tokens that spell it."""

    word: Word
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Spelling:
    """A unit before it has times."""

    text: str
    tokens: tuple[int, ...]
    has_space_before: bool


def spell(
    pieces: Sequence[tuple[str, tuple[int, ...]]], *, is_spaced: bool, follows: str = ""
) -> list[Spelling]:
    """Join pieces of decoded text (each with its tokens) to units; `follows` is the text before.

    A spaced language begins a unit at each space. Otherwise each piece is one, except that
    punctuation joins what stands before it and Latin letters or digits stay together.
    """
    units: list[Spelling] = []
    for raw, tokens in pieces:
        text = raw.strip()
        has_space = raw[:1].isspace()
        if units and (not text or _joins(units[-1].text, raw, is_spaced=is_spaced)):
            last = units[-1]
            units[-1] = Spelling(last.text + text, last.tokens + tokens, last.has_space_before)
        elif text:
            units.append(Spelling(text, tokens, has_space))
    if units and is_spaced and follows[-1:] in SENTENCE_ENDS and units[0].text[0].isalpha():
        # Made to continue after a full stop, Whisper may begin as at the start of a text.
        units[0] = replace(units[0], has_space_before=True)
    return units


def _joins(before: str, raw: str, *, is_spaced: bool) -> bool:
    """Whether the piece `raw` belongs to the unit that ends with `before`."""
    if raw[0].isspace():
        return False
    is_one_word = all(char.isascii() and char.isalnum() for char in (before[-1], raw[0]))
    return is_spaced or is_one_word or not _letters(raw)


def _letters(text: str) -> str:
    """`text` as it is compared: without case and punctuation."""
    return "".join(
        char for char in text.casefold() if unicodedata.category(char)[0] in {"L", "N", "M", "S"}
    )


def without_loops(units: Sequence[Unit]) -> list[Unit]:
    """`units` up to the first phrase that is said more than MAX_REPEATS times in a row, once.

    A decoder in a loop repeats itself for ever; nothing after the loop can be trusted.
    """
    keys = [_letters(unit.word.text) for unit in units]
    for length in range(1, MAX_PHRASE_UNITS + 1):
        run = 0
        for index in range(length, len(keys)):
            run = run + 1 if keys[index] == keys[index - length] else 0
            if run >= length * MAX_REPEATS:
                return list(units[: index - run + 1])
    return list(units)


@dataclass(slots=True)
class Agreement:
    """The hypothesis of one open utterance: agreed units, then units that may still change."""

    agreed: list[Unit] = field(default_factory=list)
    open: list[Unit] = field(default_factory=list)

    @property
    def words(self) -> tuple[Word, ...]:
        return tuple(unit.word for unit in (*self.agreed, *self.open))

    def update(self, continuation: Sequence[Unit], *, is_spaced: bool, horizon_ms: int) -> None:
        """Take a new decoding of what follows the agreed units.

        Units that end after `horizon_ms` are not agreed yet: the buffer may cut a word in two.
        """
        count = (_common_words if is_spaced else _common_characters)(self.open, continuation)
        while count and continuation[count - 1].word.end_ms > horizon_ms:
            count -= 1
        self.agreed.extend(continuation[:count])
        self.open = list(continuation[count:])

    def settle(self) -> None:
        """The last decoding stays, all of it."""
        self.agreed.extend(self.open)
        self.open = []


def _common_words(before: Sequence[Unit], after: Sequence[Unit]) -> int:
    """Leading units of `after` that `before` has too, whatever their case and punctuation.

    At the edge of the agreement the punctuation has to be the same as well: "there." becomes
    "there, and" when more is heard.
    """
    count = 0
    for old, new in zip(before, after, strict=False):
        if _letters(old.word.text) != _letters(new.word.text):
            break
        count += 1
    if count and before[count - 1].word.text != after[count - 1].word.text:
        count -= 1
    return count


def _common_characters(before: Sequence[Unit], after: Sequence[Unit]) -> int:
    """Leading units of `after` whose characters all stand in the same place in `before`."""
    if not before:
        return 0
    old = "".join(_letters(unit.word.text) for unit in before)
    count = length = 0
    for unit in after:
        letters = _letters(unit.word.text)
        if not old.startswith(letters, length):
            break
        length += len(letters)
        count += 1
    if (
        count
        and length == len(old)
        and before[-1].word.text[-1:] != after[count - 1].word.text[-1:]
    ):
        count -= 1
    return count


def in_order(
    spans: Sequence[tuple[int, int]], *, start_ms: int, end_ms: int
) -> list[tuple[int, int]]:
    """The same spans, rising, within [start_ms, end_ms], none empty."""
    ordered: list[tuple[int, int]] = []
    cursor = start_ms
    for index, (wanted, finish) in enumerate(spans):
        # Those that follow need a millisecond each.
        last = max(end_ms - (len(spans) - index - 1), start_ms + 1)
        begin = min(max(wanted, cursor), last - 1)
        cursor = max(min(finish, last), begin + 1)
        ordered.append((begin, cursor))
    return ordered
