"""Names that people choose: cleaned for display, never used in a path."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from transcription.errors import InvalidInputError

MAX_NAME_LENGTH: Final = 300
UNNAMED: Final = "Recording"

_JOINERS: Final = {"\u200c", "\u200d"}
"""Zero-width joiners: needed inside emoji and in several scripts."""
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z]{2,8})?")


def clean_display_name(name: str) -> str:
    """The last part of `name` as one line of visible text; `Recording` where nothing remains.

    Composed (NFC), so that a name from a Mac equals the same one from elsewhere. Control signs and
    marks that turn the direction of reading are dropped: they could disguise an extension or
    break a header.
    """
    cleaned = one_line(re.split(r"[/\\]", name)[-1])
    return cleaned if cleaned.strip(". ") else UNNAMED


def title_of(display_name: str) -> str:
    """`display_name` without its extension."""
    stem, dot, extension = display_name.rpartition(".")
    return stem.strip() if stem.strip() and dot and 1 <= len(extension) <= 5 else display_name


def clean_title(title: str) -> str:
    """Raises InvalidInputError where no visible sign remains."""
    cleaned = one_line(title)
    if not cleaned:
        raise InvalidInputError("A title needs at least one visible character.")
    return cleaned


def clean_language(language: str) -> str:
    """A language code such as `en`, or empty for detection. Raises InvalidInputError."""
    if language and not _LANGUAGE.fullmatch(language):
        raise InvalidInputError("This is not a language code.")
    return language


def one_line(text: str) -> str:
    """`text` as one line of visible signs, MAX_NAME_LENGTH at most; empty where none remains."""
    kept = (
        " " if sign.isspace() else sign
        for sign in text
        if sign.isspace() or sign in _JOINERS or unicodedata.category(sign)[0] != "C"
    )
    # Composed at last: a sign that was dropped may have stood between a letter and its accent.
    composed = unicodedata.normalize("NFC", "".join(kept))
    return " ".join(composed.split())[:MAX_NAME_LENGTH].strip()
