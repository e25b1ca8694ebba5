"""What people write who only heard a name is near to it; other words are not."""

from __future__ import annotations

import pytest

from asr_engine.batch.sounds import nearness, sound_of


def near(one: str, other: str) -> float:
    return float(nearness([sound_of(one)], [sound_of(other)])[0, 0])


@pytest.mark.parametrize(
    ("heard", "name"),
    [
        ("helstin", "Helstone"),
        ("nusat alzaman", "Nuzhat al Zaman"),
        ("menace", "Manasseh"),
        ("shwartz", "Schwarz"),
        ("miller", "Müller"),
        ("cooper netties", "Kubernetes"),
        ("dostoyevski", "Достоевский"),
        ("贝京", "北京"),
        ("完达", "万达"),
    ],
)
def test_what_was_heard_of_a_name_is_near(heard: str, name: str) -> None:
    assert near(heard, name) > 75


@pytest.mark.parametrize(
    ("heard", "name"),
    [("downstairs", "Helstone"), ("improvisation", "Manasseh"), ("上海", "北京"), ("", "Hale")],
)
def test_other_words_are_far(heard: str, name: str) -> None:
    assert near(heard, name) < 65


def test_signs_that_are_not_spoken_have_no_sound() -> None:
    assert sound_of("—!?") == ""
