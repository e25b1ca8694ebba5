"""Options in the words of pages and the API."""

from __future__ import annotations

import pytest

from asr_engine.config import EngineSettings
from transcription.errors import InvalidInputError
from transcription.services import job_options
from transcription.services.job_options import (
    AS_USUAL,
    MOST_SPEAKERS,
    JobOptions,
    read_options,
    speaker_choices,
)


def test_nothing_said_is_as_usual() -> None:
    assert read_options() == AS_USUAL


def test_languages_that_mix_are_no_language() -> None:
    assert read_options(language="mul") == JobOptions(mixes_languages=True)
    assert read_options(language="de") == JobOptions(language="de")


def test_speakers_are_counted_or_given() -> None:
    assert read_options(speakers="count") == JobOptions(finds_speakers=True)
    assert read_options(speakers="3") == JobOptions(finds_speakers=True, speaker_count=3)


@pytest.mark.parametrize("speakers", ["0", "-2", "x", "²", str(MOST_SPEAKERS + 1), "9" * 5000])
def test_a_number_of_speakers_that_cannot_be_is_refused(speakers: str) -> None:
    with pytest.raises(InvalidInputError):
        read_options(speakers=speakers)


def test_what_pages_offer_is_understood() -> None:
    for value, _ in speaker_choices():
        assert read_options(speakers=value).finds_speakers == bool(value)


def test_speakers_are_not_offered_where_nothing_tells_them_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        job_options, "engine_settings", lambda: EngineSettings(speaker_backend="none")
    )
    assert speaker_choices() == []
