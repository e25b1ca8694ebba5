"""A transcript as paragraphs to read. Pure: segments in, what the template shows out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from asr_engine.results import Word
from asr_engine.scripts import is_apart
from transcription.formats.speakers import shown_name
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
    """Lines that belong together: one speaker, no long pause, not endless.

    `hue` is the number of the speaker's colour, from 1; 0 where nobody is known to speak.
    """

    start_ms: int
    speaker: str
    hue: int
    lines: tuple[Line, ...]


HUES: Final = 8
NOBODY: Final[Mapping[str, str]] = MappingProxyType({})


def paragraphs_of(
    segments: Iterable[TranscriptSegment], names: Mapping[str, str] = NOBODY
) -> Iterator[Paragraph]:
    """Group `segments` (in order): a new paragraph at another speaker, a pause, or enough text.

    `names` are those of speakers, by label; who has the same name is the same person.
    """
    hues = _Hues()
    lines: list[Line] = []
    characters, last_end_ms, speaker, last_text = 0, 0, "", ""
    for segment in segments:
        is_long = characters > LONGEST_CHARACTERS and last_text.endswith(SENTENCE_ENDS)
        is_pause = segment.start_ms - last_end_ms >= PAUSE_MS
        name = shown_name(segment.speaker, names)
        if lines and (name != speaker or is_pause or is_long):
            yield Paragraph(lines[0].start_ms, speaker, hues.of(speaker), tuple(lines))
            lines, characters = [], 0
        text, pause_ms = _shown_text(segment), segment.start_ms - last_end_ms
        has_space = bool(lines) and is_spaced(last_text, text, pause_ms)
        lines.append(_line(segment, has_space_before=has_space))
        characters += len(segment.text)
        hues.note(name, segment.speaker)
        speaker, last_end_ms, last_text = name, segment.end_ms, text
    if lines:
        yield Paragraph(lines[0].start_ms, speaker, hues.of(speaker), tuple(lines))


def hue_of(label: str) -> int:
    """The number of a label's colour, from 1; the same for a label wherever it is shown."""
    if label.isascii() and label.isdigit():
        return (int(label) - 1) % HUES + 1
    return 2 if label == "right" else 1


class _Hues:
    """A person whose voice has two labels keeps the colour of the first."""

    def __init__(self) -> None:
        self._by_name = {"": 0}

    def note(self, name: str, label: str) -> None:
        self._by_name.setdefault(name, hue_of(label))

    def of(self, name: str) -> int:
        return self._by_name[name]


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
