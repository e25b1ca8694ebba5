"""Documents: a transcript to read, and one for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from asr_engine.results import Segment
from transcription.formats.transcript import Transcript, clean_text, is_spaced

PARAGRAPH_PAUSE_MS: Final = 2_000
"""A silence this long begins a new paragraph of plain text."""
PARAGRAPH_LENGTH: Final = 600
"""A paragraph this long, in characters, ends with its segment."""


def write_txt(transcript: Transcript) -> str:
    """Title and paragraphs, without times; each turn of a speaker begins with the name."""
    parts = [transcript.title] if transcript.title else []
    speaker = ""
    for paragraph in _paragraphs(transcript):
        text = "".join(pieces_of(paragraph, has_marks=True))
        name = transcript.name_of(paragraph[0].speaker or "")
        parts.append(f"{name}: {text}" if name and name != speaker else text)
        speaker = name
    return "\n\n".join(parts) + "\n" if parts else ""


def write_json(transcript: Transcript) -> str:
    """Everything that is known: segments with words, times in milliseconds, confidences.

    A segment a line. `speaker` is a label that a later transcript of the recording may give to
    somebody else, `speaker_name` what people call who speaks. With a `mark` stands no text.
    """
    head = {
        "title": transcript.title,
        "language": transcript.language or None,
        "text": "".join(pieces_of(transcript.segments)),
    }
    fields = [f"{_json(name)}: {_json(value)}," for name, value in head.items()]
    segments = [_json(_json_segment(segment, transcript)) for segment in transcript.segments]
    return "\n".join(["{", *fields, '"segments": [', ",\n".join(segments), "]", "}", ""])


def pieces_of(segments: Sequence[Segment], *, has_marks: bool = False) -> Iterator[str]:
    """The text of each, as it stands in a row: with a space before it where the script has one.

    Empty where nothing was understood, unless `has_marks`.
    """
    before, end_ms = "", 0
    for segment in segments:
        mark = f"[{segment.mark}]" if segment.mark and has_marks else ""
        piece = clean_text(segment.text) or mark
        yield f" {piece}" if is_spaced(before, piece, segment.start_ms - end_ms) else piece
        before, end_ms = piece or before, segment.end_ms


def _paragraphs(transcript: Transcript) -> Iterator[list[Segment]]:
    """Segments of one speaker, not endless, without a long pause between them."""
    held: list[Segment] = []
    for segment in transcript.segments:
        if held:
            is_pause = segment.start_ms - held[-1].end_ms >= PARAGRAPH_PAUSE_MS
            is_long = sum(len(one.text) for one in held) >= PARAGRAPH_LENGTH
            if is_pause or is_long or segment.speaker != held[-1].speaker:
                yield held
                held = []
        held.append(segment)
    if held:
        yield held


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _json_segment(segment: Segment, transcript: Transcript) -> dict[str, Any]:
    return {
        "start_ms": segment.start_ms,
        "end_ms": segment.end_ms,
        "text": segment.text,
        "speaker": segment.speaker,
        "speaker_name": transcript.name_of(segment.speaker or "") or None,
        "language": segment.language or transcript.language or None,
        "mark": segment.mark,
        "words": [word.as_json() for word in segment.words],
    }
