"""A recording's transcripts are in its own script, or the site's."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from transcription.models import Recording
from transcription.services.chinese import script_of


@pytest.mark.parametrize(
    ("chosen", "expected"), [("", "heard"), ("hans", "hans"), ("hant", "hant")]
)
def test_what_was_chosen_for_a_recording_wins(
    chosen: str, expected: str, settings: Settings
) -> None:
    settings.SITE = settings.SITE.model_copy(update={"chinese_script": "heard"})
    assert script_of(Recording(chinese_script=chosen)) == expected
