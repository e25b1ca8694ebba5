"""What recognition yields: words, segments, language guesses. Plain, frozen, JSON-able.

Positions are integer milliseconds from the start of the recording (or live session).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Word:
    """One word. `text` has no surrounding space; `confidence` is 0..1 or None where unknown.

    `has_space_before` is False where the script writes no space (CJK) or for joined punctuation.
    """

    text: str
    start_ms: int
    end_ms: int
    confidence: float | None = None
    has_space_before: bool = True

    def as_json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "start_ms": self.start_ms,
            "end_ms": self.end_ms,
            "confidence": self.confidence,
            "has_space_before": self.has_space_before,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Word:
        return cls(
            text=data["text"],
            start_ms=data["start_ms"],
            end_ms=data["end_ms"],
            confidence=data.get("confidence"),
            has_space_before=data.get("has_space_before", True),
        )


def join_words(words: Iterable[Word]) -> str:
    """Text of `words` with spaces only where the script has them."""
    parts: list[str] = []
    for word in words:
        if parts and word.has_space_before:
            parts.append(" ")
        parts.append(word.text)
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class Segment:
    """A timed piece of transcript: 0 <= start_ms < end_ms <= duration of the recording.

    `mean_log_probability` and `no_speech_probability` are the decoder's own, kept for judging.
    `speaker` is a label, not a name. `mark` "unclear" stands for speech that could not be written
    down: such a segment has no text.
    """

    start_ms: int
    end_ms: int
    text: str
    words: tuple[Word, ...] = ()
    language: str | None = None
    mean_log_probability: float | None = None
    no_speech_probability: float | None = None
    compression_ratio: float | None = None
    speaker: str | None = None
    mark: str | None = None


@dataclass(frozen=True, slots=True)
class LanguageGuess:
    """An ISO 639-1 code (Whisper's codes) and its probability 0..1."""

    language: str
    probability: float
