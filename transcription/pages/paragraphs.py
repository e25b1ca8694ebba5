"""A transcript as paragraphs to read. Pure: segments in, what the template shows out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from asr_engine.results import Word
from asr_engine.scripts import is_apart
from transcription.formats.transcript import is_spaced
from transcription.models import SegmentMark, TranscriptSegment

PAUSE_MS = 2_000
LONGEST_CHARACTERS = 480
SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？", "؟", "।")
UNSURE_BELOW = 0.5
UNCLEAR = "[unclear]"
"""Stands for speech that no words were found for."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Text of a segment that is shown alike; `is_unsure` for a word of low confidence."""

    text: str
    is_unsure: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A segment as the page shows it.

    `words` says where each word is heard and stands: `start:offset:length`, the start in
    milliseconds after the segment's own, offset and length in UTF-16 units as scripts count them.
    `language` is empty where it is the transcript's.
    """

    index: int
    start_ms: int
    end_ms: int
    pieces: tuple[Piece, ...]
    words: str
    language: str
    has_space_before: bool
    is_unclear: bool


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines that belong together: one speaker, no long pause, not endless."""

    start_ms: int
    speaker: str
    lines: tuple[Line, ...]


def paragraphs_of(segments: Iterable[TranscriptSegment]) -> Iterator[Paragraph]:
    """Group `segments` (in order): a new paragraph at another speaker, a pause, or enough text."""
    lines: list[Line] = []
    characters, last_end_ms, speaker, last_text = 0, 0, "", ""
    for segment in segments:
        is_long = characters > LONGEST_CHARACTERS and last_text.endswith(SENTENCE_ENDS)
        is_pause = segment.start_ms - last_end_ms >= PAUSE_MS
        if lines and (segment.speaker != speaker or is_pause or is_long):
            yield Paragraph(lines[0].start_ms, speaker, tuple(lines))
            lines, characters = [], 0
        text, pause_ms = _shown_text(segment), segment.start_ms - last_end_ms
        has_space = bool(lines) and is_spaced(last_text, text, pause_ms)
        lines.append(_line(segment, has_space_before=has_space))
        characters += len(segment.text)
        speaker, last_end_ms, last_text = segment.speaker, segment.end_ms, text
    if lines:
        yield Paragraph(lines[0].start_ms, speaker, tuple(lines))


def joined(texts: Iterable[str]) -> str:
    """Texts of segments as running text, with spaces where their script writes them."""
    said = ""
    for text in map(str.strip, texts):
        said += f" {text}" if is_apart(said, text) else text
    return said


def _shown_text(segment: TranscriptSegment) -> str:
    return UNCLEAR if segment.mark == SegmentMark.UNCLEAR else segment.text.strip()


def _line(segment: TranscriptSegment, *, has_space_before: bool) -> Line:
    text = _shown_text(segment)
    pieces: list[Piece] = []
    places: list[str] = []
    done = 0
    for word in map(Word.from_json, segment.words):
        at = text.find(word.text, done) if word.text else -1
        if at < 0:
            continue
        end = at + len(word.text)
        offset, length = _utf16_units(text[:at]), _utf16_units(word.text)
        places.append(f"{max(0, word.start_ms - segment.start_ms)}:{offset}:{length}")
        if _is_unsure(word):
            if text[done:at]:
                pieces.append(Piece(text[done:at], is_unsure=False))
            pieces.append(Piece(word.text, is_unsure=True))
        else:
            pieces.append(Piece(text[done:end], is_unsure=False))
        done = end
    if text[done:]:
        pieces.append(Piece(text[done:], is_unsure=False))
    return Line(
        index=segment.index,
        start_ms=segment.start_ms,
        end_ms=segment.end_ms,
        pieces=tuple(_merged(pieces)),
        words=" ".join(places),
        language=segment.language,
        has_space_before=has_space_before,
        is_unclear=segment.mark == SegmentMark.UNCLEAR,
    )


def _is_unsure(word: Word) -> bool:
    """A comma by itself is nothing that a reader could check."""
    is_low = word.confidence is not None and word.confidence < UNSURE_BELOW
    return is_low and any(character.isalnum() for character in word.text)


def _merged(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Neighbours that look alike become one, so that a page of text is few elements."""
    waiting: Piece | None = None
    for piece in pieces:
        if waiting is None:
            waiting = piece
        elif waiting.is_unsure == piece.is_unsure:
            waiting = Piece(waiting.text + piece.text, piece.is_unsure)
        else:
            yield waiting
            waiting = piece
    if waiting is not None:
        yield waiting


def _utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
