"""Names that people choose are shown as they are, and can do no harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transcription.errors import InvalidInputError
from transcription.services.names import (
    MAX_NAME_LENGTH,
    clean_display_name,
    clean_language,
    clean_title,
    title_of,
)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("meeting.wav", "meeting.wav"),
        ("../../etc/passwd", "passwd"),
        (r"C:\recordings\talk.mp3", "talk.mp3"),
        ("u\u0308ber.wav", "über.wav"),
        ("u\u202e\u0308ber.wav", "über.wav"),
        ("report\u202egpj.wav", "reportgpj.wav"),
        ("a\r\nSet-Cookie: x.wav", "a Set-Cookie: x.wav"),
        ("会议录音.m4a", "会议录音.m4a"),
        ("👩\u200d👩\u200d👧.mp3", "👩\u200d👩\u200d👧.mp3"),
        ("...", "Recording"),
        ("", "Recording"),
        ("\x00\x1f", "Recording"),
        ("<b>x</b>.wav", "b>.wav"),
    ],
)
def test_display_name_is_one_visible_line_without_its_folders(raw: str, shown: str) -> None:
    assert clean_display_name(raw) == shown


def test_255_bytes_of_cjk_are_kept() -> None:
    name = "漢" * 84 + ".wa"
    assert len(name.encode()) == 255
    assert clean_display_name(name) == name


@given(st.text(max_size=600))
def test_any_name_becomes_a_short_visible_line(name: str) -> None:
    shown = clean_display_name(name)
    assert 0 < len(shown) <= MAX_NAME_LENGTH
    assert "\n" not in shown
    assert "/" not in shown
    assert clean_display_name(shown) == shown


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("talk.final.mp3", "talk.final"),
        ("talk", "talk"),
        (".wav", ".wav"),
        ("v1. notes", "v1. notes"),
    ],
)
def test_title_is_the_name_without_its_extension(name: str, title: str) -> None:
    assert title_of(name) == title


def test_title_needs_a_visible_sign() -> None:
    with pytest.raises(InvalidInputError):
        clean_title(" \u202e\n")
    assert clean_title("Q3/Q4 plan") == "Q3/Q4 plan"


def test_language_is_a_code_or_empty() -> None:
    assert clean_language("") == ""
    assert clean_language("en") == "en"
    with pytest.raises(InvalidInputError):
        clean_language("<script>")
