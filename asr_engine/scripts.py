"""How Chinese is written: in simplified or traditional characters, with a space beside Latin words.

A model writes what it learnt from, often both scripts in one text. Only Chinese is touched: kanji
and hanja share its characters, but not its forms. Numbers stay as the model wrote them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, Literal

from asr_engine.results import Segment, Word, join_words

ChineseScript = Literal["heard", "hans", "hant"]
"""`hans` is simplified, `hant` traditional as Taiwan writes it, `heard` as the model wrote it."""

CONFIGURATIONS: Final = {"hans": "t2s", "hant": "s2tw"}
"""OpenCC's, for characters: the vocabulary of one place is not made that of another."""
NOT_CHINESE: Final = frozenset({"ja", "ko"})
"""Languages that have the characters in forms of their own."""

_HAN: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_KANA_OR_HANGUL: Final = re.compile("[\u3040-\u30ff\u31f0-\u31ff\u1100-\u11ff\uac00-\ud7af]")
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u2e80-\u9fff\uf900-\uffef\U00020000-\U000323af]")
_LATIN_WORD: Final = re.compile(
    r"(?:\d[\d.,]*)?[A-Za-z\u00c0-\u024f][\dA-Za-z\u00c0-\u024f+#%.,'’-]*", re.ASCII
)
"""With a letter in it: a number by itself is left as it is."""


def written(segments: Iterable[Segment], script: ChineseScript) -> list[Segment]:
    """The segments as a transcript shows them: in one script, with spaces at its borders."""
    return spaced(to_script(segments, script))


def to_script(segments: Iterable[Segment], script: ChineseScript) -> list[Segment]:
    """The segments in `script`, and their words, which stay as many and at their times."""
    if script == "heard":
        return list(segments)
    return [
        _rewritten(segment, _converter(script), lambda words: _converted(words, script))
        for segment in segments
    ]


def spaced(segments: Iterable[Segment]) -> list[Segment]:
    """The segments with a space wherever a Chinese character meets a Latin word."""
    return [_rewritten(segment, _with_spaces, _spaced) for segment in segments]


def written_text(text: str, *, language: str | None, script: ChineseScript) -> str:
    """`text` alone as `written` leaves it."""
    if not _is_chinese(text, language):
        return text
    return _with_spaces(text if script == "heard" else _converter(script)(text))


def written_words(
    words: Sequence[Word], *, language: str | None, script: ChineseScript
) -> tuple[Word, ...]:
    """`words` as `written` leaves them."""
    if not _is_chinese(join_words(words), language):
        return tuple(words)
    return _spaced(words if script == "heard" else _converted(words, script))


def is_apart(before: str, after: str) -> bool:
    """Whether a space stands between two texts that follow each other: none in scripts that write
    none (Chinese, kana, Thai), but where such a script meets Latin letters."""
    last, first = before[-1:], after[:1]
    if not last or not first:
        return False
    is_border = bool(_HAN.match(last) and _LATIN_WORD.match(first))
    return is_border or not _UNSPACED.match(last)


def is_traditional(text: str) -> bool:
    """Whether Chinese `text` has a character that simplified writing does not."""
    return _converter("hans")(text) != text


def prepare(script: ChineseScript) -> None:
    """Read OpenCC's dictionaries now, rather than at the first word."""
    if script != "heard":
        _converter(script)


def _is_chinese(text: str, language: str | None) -> bool:
    """Whether `text` holds Chinese, in whatever language it is spoken; where that is not known, the
    signs of the others tell."""
    if (language or "").partition("-")[0] in NOT_CHINESE:
        return False
    return bool(_HAN.search(text)) and not _KANA_OR_HANGUL.search(text)


def _rewritten(
    segment: Segment,
    rewrite_text: Callable[[str], str],
    rewrite_words: Callable[[Sequence[Word]], tuple[Word, ...]],
) -> Segment:
    if not _is_chinese(segment.text, segment.language):
        return segment
    words = rewrite_words(segment.words)
    is_of_words = segment.text == join_words(segment.words)
    text = join_words(words) if is_of_words else rewrite_text(segment.text)
    return replace(segment, text=text, words=words)


def _converted(words: Sequence[Word], script: ChineseScript) -> tuple[Word, ...]:
    """`words` in `script`. A character's form hangs on those beside it, so that the whole text is
    converted and cut again where it was."""
    convert = _converter(script)
    text = join_words(words)
    converted = convert(text)
    if len(converted) != len(text):
        return tuple(replace(word, text=convert(word.text)) for word in words)
    return tuple(
        replace(word, text=converted[start : start + len(word.text)])
        for start, word in _placed(words)
    )


def _spaced(words: Sequence[Word]) -> tuple[Word, ...]:
    """`words` with spaces at the borders between and, where a model made one word of both, in
    them."""
    borders = _borders(join_words(words))
    result = []
    for start, word in _placed(words):
        inner = [border - start for border in borders if start < border < start + len(word.text)]
        has_space = word.has_space_before or start in borders
        if inner or has_space != word.has_space_before:
            text = _cut_by_spaces(word.text, inner)
            result.append(replace(word, text=text, has_space_before=has_space))
        else:
            result.append(word)
    return tuple(result)


def _with_spaces(text: str) -> str:
    return _cut_by_spaces(text, _borders(text))


def _cut_by_spaces(text: str, places: Sequence[int]) -> str:
    starts, ends = [0, *places], [*places, len(text)]
    return " ".join(text[start:end] for start, end in zip(starts, ends, strict=True))


def _borders(text: str) -> list[int]:
    """Where in `text` a Chinese character and a Latin word touch, in order."""
    borders = []
    for found in _LATIN_WORD.finditer(text):
        start, end = found.span()
        if start and _HAN.match(text[start - 1]):
            borders.append(start)
        if end < len(text) and _HAN.match(text[end]):
            borders.append(end)
    return borders


def _placed(words: Sequence[Word]) -> Iterator[tuple[int, Word]]:
    """Each word with the place at which it begins in the joined text."""
    place = 0
    for index, word in enumerate(words):
        place += bool(index and word.has_space_before)
        yield place, word
        place += len(word.text)


@functools.cache
def _converter(script: str) -> Callable[[str], str]:
    import opencc

    convert: Callable[[str], str] = opencc.OpenCC(CONFIGURATIONS[script]).convert
    return convert
