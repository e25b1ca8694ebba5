"""Voices become speakers: as many as were heard, or as many as there are."""

from __future__ import annotations

import numpy as np
import pytest

from asr_engine.diarisation import clustering
from asr_engine.diarisation.clustering import speakers_of
from asr_engine.diarisation.port import Voice

SIZE = 64


def person(number: int) -> np.ndarray:
    return np.eye(SIZE, dtype=np.float32)[number]


def voice(number: int, *, window: int, alone_ms: int = 3000, drift: float = 0.0) -> Voice:
    """A voice of person `number`, `drift` of the way to nobody's voice."""
    heard = (1 - drift) * person(number) + drift * person(SIZE - 1)
    return Voice(window, ((window, window + 1),), alone_ms, heard / np.linalg.norm(heard))


def test_same_voice_in_different_windows_is_one_speaker() -> None:
    found = speakers_of([voice(n % 2, window=n, drift=0.02 * n) for n in range(10)], speakers=None)
    assert len(set(found[::2])) == len(set(found[1::2])) == 1
    assert found[0] != found[1]


def test_given_number_joins_the_nearest_voices() -> None:
    between = person(0) + person(1)
    voices = [
        voice(0, window=0),
        Voice(1, ((1, 2),), 3000, (between / np.linalg.norm(between)).astype(np.float32)),
        voice(3, window=2),
    ]
    assert list(speakers_of(voices, speakers=2)) == [0, 0, 1]


def test_one_voice_is_not_divided_to_reach_a_given_number() -> None:
    voices = [voice(0, window=n, drift=0.01 * n) for n in range(6)]
    assert set(speakers_of(voices, speakers=4)) == {0}


def test_voices_told_apart_in_one_window_stay_apart() -> None:
    alike = voice(0, window=0, drift=0.0), voice(0, window=0, drift=0.5)
    assert len(set(speakers_of(alike, speakers=None))) == 2


def test_voiceprint_of_a_moment_founds_no_speaker() -> None:
    moment = voice(5, window=1, alone_ms=100, drift=0.6)
    found = speakers_of([voice(0, window=0), moment, voice(1, window=2)], speakers=None)
    assert found[1] in {found[0], found[2]}


def test_moments_alone_still_have_a_speaker() -> None:
    assert list(speakers_of([voice(0, window=0, alone_ms=0)], speakers=None)) == [0]


def test_voice_takes_no_speaker_that_another_of_its_window_has() -> None:
    moment = voice(0, window=0, alone_ms=100)
    found = speakers_of([voice(0, window=0), moment, voice(1, window=1)], speakers=None)
    assert found[1] == found[2]


def test_nobody_speaks_in_silence() -> None:
    assert not len(speakers_of([], speakers=3))


def test_matrix_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering, "MAX_CLUSTERED", 4)
    found = speakers_of(
        [voice(n % 2, window=n, alone_ms=1000 + n) for n in range(40)], speakers=None
    )
    assert [int(number != found[0]) for number in found] == [n % 2 for n in range(40)]
