"""Latency modes in people's words."""

from __future__ import annotations

import pytest

from transcription.latency_modes import mode_choices


def test_modes_are_named_from_fast_to_accurate_with_their_milliseconds() -> None:
    assert mode_choices((80, 160, 560, 1120)) == [
        (80, "Fastest · 80 ms"),
        (160, "Fast · 160 ms"),
        (560, "Accurate · 560 ms"),
        (1120, "Most accurate · 1120 ms"),
    ]


@pytest.mark.parametrize("modes_ms", [(), (560,), (560, 560)])
def test_fewer_than_two_modes_are_no_choice(modes_ms: tuple[int, ...]) -> None:
    assert mode_choices(modes_ms) == []


@pytest.mark.parametrize("count", range(2, 8))
def test_the_ends_are_named_and_no_two_modes_have_the_same_words(count: int) -> None:
    choices = mode_choices([160 * step for step in range(count, 0, -1)])
    words = [said for _, said in choices]
    assert [mode_ms for mode_ms, _ in choices] == [160 * step for step in range(1, count + 1)]
    assert words[0] == "Fastest · 160 ms"
    assert words[-1] == f"Most accurate · {160 * count} ms"
    assert len({said.split(" · ")[0] for said in words}) == count
