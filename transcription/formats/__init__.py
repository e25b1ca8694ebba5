"""Transcript formats: pure functions from segments to text.

Owns what a downloaded transcript looks like; not where it comes from, nor how it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from asr_engine.results import Segment
from transcription.errors import InvalidInputError
from transcription.formats.documents import write_json, write_txt
from transcription.formats.subtitles import write_srt, write_vtt
from transcription.formats.transcript import Transcript, clean_text

NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Format:
    """One way to write a transcript. `extension` is its name in URLs and on the command line."""

    extension: str
    label: str
    media_type: str
    write: Callable[[Transcript], str]


def export(
    extension: str,
    title: str,
    segments: Sequence[Segment],
    *,
    language: str = "",
    names: Mapping[str, str] = NO_NAMES,
    duration_ms: int | None = None,
) -> str:
    """The transcript, ordered by time, in the format named by `extension`.

    `title` and `language` may be empty; `names` are those of speakers, by label. No subtitle is
    shown beyond `duration_ms`. Raises InvalidInputError for an unknown format.
    """
    try:
        chosen = FORMATS[extension]
    except KeyError:
        known = ", ".join(FORMATS)
        raise InvalidInputError(f"There is no such format. Choose one of {known}.") from None
    return chosen.write(
        Transcript(
            title=clean_text(title),
            segments=sorted(segments, key=lambda segment: segment.start_ms),
            language=language,
            names=names,
            duration_ms=duration_ms,
        )
    )


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
