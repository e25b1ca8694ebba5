"""Transcript formats: pure functions from segments to text.

Owns what a downloaded transcript looks like; not where it comes from, nor how it is sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from asr_engine.results import Segment
from transcription.errors import InvalidInputError
from transcription.formats.cues import Cue, clean_text, is_wide, make_cues

PARAGRAPH_PAUSE_MS: Final = 2_000
"""A silence this long begins a new paragraph of plain text."""
PARAGRAPH_LENGTH: Final = 600
"""A paragraph this long, in characters, ends with its segment."""


@dataclass(frozen=True, slots=True)
class Format:
    """One way to write a transcript. `extension` is its name in URLs and on the command line."""

    extension: str
    label: str
    media_type: str
    write: Callable[[str, Sequence[Segment], str], str]


def export(extension: str, title: str, segments: Sequence[Segment], *, language: str = "") -> str:
    """The transcript in the format named by `extension`; `title` and `language` may be empty.

    Raises InvalidInputError for an unknown format.
    """
    try:
        chosen = FORMATS[extension]
    except KeyError:
        known = ", ".join(FORMATS)
        raise InvalidInputError(f"There is no such format. Choose one of {known}.") from None
    return chosen.write(clean_text(title), segments, language)


def write_txt(title: str, segments: Sequence[Segment], language: str) -> str:
    """Title and paragraphs, without times."""
    del language
    parts = [title] if title else []
    parts += _paragraphs(segments)
    return "\n\n".join(parts) + "\n" if parts else ""


def write_srt(title: str, segments: Sequence[Segment], language: str) -> str:
    """SubRip: the format has no place for a title, and no escapes."""
    del title, language
    blocks = []
    for number, cue in enumerate(make_cues(segments), start=1):
        times = f"{_clock(cue.start_ms, ',')} --> {_clock(cue.end_ms, ',')}"
        # An arrow in the text would be read as a line of times.
        lines = "\n".join(line.replace("-->", "->") for line in cue.lines)
        blocks.append(f"{number}\n{times}\n{lines}\n")
    return "\n".join(blocks)


def write_vtt(title: str, segments: Sequence[Segment], language: str) -> str:
    """WebVTT with escaped text; the title stands on the first line, as the format allows."""
    del language
    head = f"WEBVTT - {title.replace('-->', '->')}" if title else "WEBVTT"
    blocks = [f"{head}\n"]
    blocks += [_vtt_block(cue) for cue in make_cues(segments)]
    return "\n".join(blocks)


def write_json(title: str, segments: Sequence[Segment], language: str) -> str:
    """Everything that is known: segments with words, times in milliseconds, confidences."""
    data = {
        "title": title,
        "language": language or None,
        "text": _joined(segments),
        "segments": [_json_segment(segment) for segment in segments],
    }
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


def _paragraphs(segments: Sequence[Segment]) -> Iterator[str]:
    held: list[Segment] = []
    for segment in segments:
        is_new = bool(held) and segment.start_ms - held[-1].end_ms >= PARAGRAPH_PAUSE_MS
        if is_new or sum(len(one.text) for one in held) >= PARAGRAPH_LENGTH:
            yield _joined(held)
            held = []
        held.append(segment)
    if held:
        yield _joined(held)


def _joined(segments: Sequence[Segment]) -> str:
    """Texts in a row, with spaces where the script has them."""
    text = ""
    for segment in segments:
        piece = clean_text(segment.text)
        words = segment.words
        has_space = words[0].has_space_before if words else not is_wide(piece[:1])
        text += f" {piece}" if text and has_space else piece
    return text


def _vtt_block(cue: Cue) -> str:
    lines = "\n".join(
        line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for line in cue.lines
    )
    return f"{_clock(cue.start_ms, '.')} --> {_clock(cue.end_ms, '.')}\n{lines}\n"


def _json_segment(segment: Segment) -> dict[str, Any]:
    return {
        "start_ms": segment.start_ms,
        "end_ms": segment.end_ms,
        "text": segment.text,
        "words": [word.as_json() for word in segment.words],
    }


def _clock(position_ms: int, point: str) -> str:
    seconds, milliseconds = divmod(position_ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}{point}{milliseconds:03}"


FORMATS: Final[Mapping[str, Format]] = MappingProxyType(
    {
        entry.extension: entry
        for entry in (
            Format("txt", "Plain text", "text/plain; charset=utf-8", write_txt),
            Format("srt", "SubRip subtitles", "application/x-subrip; charset=utf-8", write_srt),
            Format("vtt", "WebVTT captions", "text/vtt; charset=utf-8", write_vtt),
            Format("json", "JSON with word times", "application/json", write_json),
        )
    }
)
"""Every format, by extension, in the order in which pages offer them."""
