"""Times, lengths, sizes and icons as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from transcription.templatetags import ui

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (timedelta(seconds=-5), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(minutes=1), "1 min ago"),
        (timedelta(minutes=59, seconds=59), "59 min ago"),
        (timedelta(hours=23), "23 h ago"),
        (timedelta(hours=25), "yesterday"),
        (timedelta(days=3), "Thursday"),
        (timedelta(days=7), "22 November"),
        (timedelta(days=400), "25 October 2025"),
    ],
)
def test_relative_time(age: timedelta, words: str) -> None:
    assert ui.relative_time(NOW - age, NOW) == words


def test_exact_time_is_in_the_zone_of_the_reader() -> None:
    with timezone.override(ZoneInfo("Asia/Shanghai")):
        shown = ui.when(NOW)
    assert 'title="29 November 2026, 20:00 (CST)"' in shown
    assert 'datetime="2026-11-29T12:00:00+00:00"' in shown
    assert ui.when(None) == ""


@pytest.mark.parametrize(
    ("position_ms", "words"),
    [(0, "0:00"), (None, "0:00"), (61_999, "1:01"), (3_723_000, "1:02:03")],
)
def test_clock(position_ms: int | None, words: str) -> None:
    assert ui.clock(position_ms) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""),
        (0, "less than a minute"),
        (55, "about 1 min"),
        (200, "about 3 min"),
        (2 * 3600, "about 2 h"),
    ],
)
def test_about(seconds: float | None, words: str) -> None:
    assert ui.about(seconds) == words


@pytest.mark.parametrize(
    ("length_bytes", "words"),
    [(12, "12 bytes"), (1536, "1.5 kB"), (8 * 1024**3, "8 GB"), (734_003_200, "700 MB")],
)
def test_size(length_bytes: int, words: str) -> None:
    assert ui.size(length_bytes) == words


def test_marked_keeps_text_text() -> None:
    assert ui.marked("a <b> North", "north") == "a &lt;b&gt; <mark>North</mark>"
    assert ui.marked("a <b>", "<B>") == "a <mark>&lt;b&gt;</mark>"
    assert ui.marked("İstanbul north", "north") == "İstanbul north"


def test_icon_is_decoration_unless_it_is_named() -> None:
    assert "only-heard" not in ui.icon("mic")
    assert '<span class="only-heard">Speak &amp; go</span>' in ui.icon("mic", "Speak & go")
