"""Where a line may end in scripts that put no spaces between words: between phrases.

BudouX finds them, with a small model for each script.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from asr_engine.results import Word, join_words
from asr_engine.scripts import is_traditional
from transcription.formats.transcript import BREATH_MS

if TYPE_CHECKING:
    import budoux

_HAN: Final = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_KANA: Final = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
_THAI: Final = "\u0e01-\u0e5b"
_UNSPACED: Final = re.compile(f"[{_HAN}{_KANA}{_THAI}]")
_JAPANESE: Final = re.compile(f"[{_KANA}]")
_THAI_SIGN: Final = re.compile(f"[{_THAI}]")


def in_phrases(words: Sequence[Word], *, longest: int) -> Iterator[Word]:
    """`words` of scripts without spaces joined to phrases of at most `longest` characters.

    Other words stay as they are, and so does what follows a pause.
    """
    text = join_words(words)
    ends = _phrase_ends(text) if _UNSPACED.search(text) else frozenset()
    held: Word | None = None
    position = 0
    for word in words:
        if held is not None:
            position += word.has_space_before
            is_one = position not in ends and _is_inside_a_phrase(held, word)
            if is_one and len(held.text + word.text) <= longest:
                held = replace(held, text=held.text + word.text, end_ms=word.end_ms)
                position += len(word.text)
                continue
            yield held
        held = word
        position += len(word.text)
    if held is not None:
        yield held


def _is_inside_a_phrase(before: Word, after: Word) -> bool:
    """Both sides are of a script without spaces, with nothing between."""
    return (
        not after.has_space_before
        and after.start_ms - before.end_ms < BREATH_MS
        and bool(_UNSPACED.match(before.text[-1]) and _UNSPACED.match(after.text[0]))
    )


def _phrase_ends(text: str) -> frozenset[int]:
    return frozenset(accumulate(map(len, _parser(_script_of(text)).parse(text))))


def _script_of(text: str) -> str:
    if _THAI_SIGN.search(text):
        return "thai"
    if _JAPANESE.search(text):
        return "japanese"
    return "traditional_chinese" if is_traditional(text) else "simplified_chinese"


@functools.cache
def _parser(script: str) -> budoux.Parser:
    import budoux

    parser: budoux.Parser = getattr(budoux, f"load_default_{script}_parser")()
    return parser
