"""From SentencePiece tokens to timed words, one token at a time.

`▁` begins a word. Pieces of scripts that write no spaces are words of their own, joined without a
space. Byte pieces (`<0xE4>`) are put together again; other pieces in angle brackets are marks of
the model (an unknown token, a language) and no text.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Final

from asr_engine.results import Word

WORD_MARK: Final = "▁"
JOIN_MS: Final = 320
"""A word lasts until the next one where that begins so soon: tokens come at the beginning of what
they say, so that the end of a word's last token is not the end of its sound."""

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_MARK = re.compile(r"<[^<>]+>")
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)


@dataclass(slots=True)
class _OpenWord:
    """The word that the next piece may still change."""

    text: str
    start_ms: int
    end_ms: int
    has_space_before: bool
    confidences: list[float] = field(default_factory=list)

    def closed(self, next_start_ms: int | None) -> Word:
        end_ms = max(self.end_ms, self.start_ms + 1)
        if next_start_ms is not None and end_ms < next_start_ms <= end_ms + JOIN_MS:
            end_ms = next_start_ms
        confidence = None
        if self.confidences:
            confidence = sum(self.confidences) / len(self.confidences)
        return Word(self.text, self.start_ms, end_ms, confidence, self.has_space_before)


class WordBuilder:
    """The words of one utterance as its pieces come."""

    def __init__(self) -> None:
        self._closed: list[Word] = []
        self._open: _OpenWord | None = None
        self._is_new_word = True
        self._bytes = b""

    @property
    def stable_words(self) -> int:
        """Words that no further piece can change."""
        return len(self._closed)

    def words(self) -> tuple[Word, ...]:
        if self._open is None:
            return tuple(self._closed)
        return (*self._closed, self._open.closed(None))

    def add(self, piece: str, start_ms: int, end_ms: int, confidence: float | None) -> None:
        """Take the piece that was said in [start_ms, end_ms)."""
        text = self._text_of(piece)
        if text.startswith(WORD_MARK):
            self._is_new_word = True
            text = text[1:]
        text = text.replace(WORD_MARK, " ")
        if not text:
            return
        if self._begins_word(text):
            self._close(start_ms)
            self._open = _OpenWord(text, start_ms, end_ms, self._is_new_word)
            self._is_new_word = False
        elif self._open is not None:
            self._open.text += text
            self._open.end_ms = max(self._open.end_ms, end_ms)
        if self._open is not None and confidence is not None:
            self._open.confidences.append(confidence)

    def _begins_word(self, text: str) -> bool:
        if self._open is None:
            return True
        if _is_closing_punctuation(text):
            # "▁." is a full stop of the word before, not a word.
            self._is_new_word = False
            return False
        return self._is_new_word or bool(
            _UNSPACED.match(text) or _UNSPACED.match(self._open.text[-1])
        )

    def _close(self, next_start_ms: int) -> None:
        if self._open is not None:
            self._closed.append(self._open.closed(next_start_ms))
            self._open = None

    def _text_of(self, piece: str) -> str:
        if byte := _BYTE.fullmatch(piece):
            self._bytes += bytes([int(byte[1], 16)])
            try:
                text = self._bytes.decode()
            except UnicodeDecodeError:
                # Four bytes make any character: more of them make none.
                self._bytes = self._bytes if len(self._bytes) < 4 else b""
                return ""
            self._bytes = b""
            return text
        self._bytes = b""
        return "" if _MARK.fullmatch(piece) else piece


def _is_closing_punctuation(text: str) -> bool:
    """Marks that follow a word without a space: `.`, `,`, `?`, `。`, `)`; not `(` or `"`."""
    return all(unicodedata.category(sign) in {"Po", "Pe", "Pf"} for sign in text)
