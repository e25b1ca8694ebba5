"""What is written down in some format: a recording's text and what is known about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from asr_engine.results import Segment
from asr_engine.scripts import is_apart
from transcription.formats.speakers import shown_name

BREATH_MS: Final = 300
"""A pause in which a speaker takes breath: a sentence or phrase ends there."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """Segments in the order of their starts; `title` and `language` may be empty.

    `names` gives speakers' labels their names. Nothing is shown beyond `duration_ms`, where it is
    known.
    """

    title: str
    segments: Sequence[Segment]
    language: str
    names: Mapping[str, str]
    duration_ms: int | None

    def name_of(self, speaker: str) -> str:
        """What the speaker with this label is called; "" for none."""
        return clean_text(shown_name(speaker, self.names))


def is_spaced(before: str, after: str, pause_ms: int) -> bool:
    """Whether a space stands between the texts of two segments with `pause_ms` between them.

    Where a sentence without punctuation ends, it does in every script.
    """
    is_breath = pause_ms >= BREATH_MS and before[-1:].isalnum()
    return bool(before and after) and (is_breath or is_apart(before, after))


def clean_text(text: str) -> str:
    """One line of printable text: no control characters, no runs of white space."""
    if not text.isprintable():
        text = "".join(c if _is_kept(c) else " " for c in text)
    return " ".join(text.split())


def _is_kept(character: str) -> bool:
    """Joiners shape letters and faces: without them some scripts are written wrong."""
    return character.isprintable() or character in "\u200c\u200d"
