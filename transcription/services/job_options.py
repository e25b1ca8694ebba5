"""What somebody asks of a transcription, and the words in which pages and the API say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from asr_engine.config import engine_settings
from transcription.errors import InvalidInputError
from transcription.languages import MIXED
from transcription.services.names import clean_language

COUNT_SPEAKERS: Final = "count"
"""Tell the speakers apart and count them; a number says how many there are."""
MOST_SPEAKERS: Final = 20
OFFERED_SPEAKERS: Final = 8
"""The greatest number among a page's choices."""


@dataclass(frozen=True, slots=True)
class JobOptions:
    """An empty `language` is detected, an empty `chinese_script` is the site's; with
    `speaker_count` None the speakers are counted.
    """

    language: str = ""
    mixes_languages: bool = False
    chinese_script: str = ""
    finds_speakers: bool = False
    speaker_count: int | None = None
    is_draft_only: bool = False


AS_USUAL: Final = JobOptions()


def read_options(
    *,
    language: str = "",
    chinese_script: str = "",
    speakers: str = "",
    is_draft_only: bool = False,
) -> JobOptions:
    """Options from words: `language` a code, MIXED or empty; `speakers` COUNT_SPEAKERS, a number
    or empty. Raises InvalidInputError.
    """
    mixes_languages = language == MIXED
    return JobOptions(
        language="" if mixes_languages else clean_language(language),
        mixes_languages=mixes_languages,
        chinese_script=chinese_script,
        finds_speakers=bool(speakers),
        speaker_count=_read_count(speakers),
        is_draft_only=is_draft_only,
    )


def speaker_choices() -> list[tuple[str, str]]:
    """What a page offers for `speakers`, with names; nothing where no model tells them apart."""
    if engine_settings().speaker_backend == "none":
        return []
    numbers = [(str(count), f"{count} speakers") for count in range(2, OFFERED_SPEAKERS + 1)]
    return [("", "Do not tell speakers apart"), (COUNT_SPEAKERS, "Tell speakers apart"), *numbers]


def _read_count(speakers: str) -> int | None:
    if speakers in {"", COUNT_SPEAKERS}:
        return None
    count = int(speakers) if speakers.isascii() and speakers.isdigit() and len(speakers) < 4 else 0
    if not 1 <= count <= MOST_SPEAKERS:
        raise InvalidInputError(f"The number of speakers is between 1 and {MOST_SPEAKERS}.")
    return count
