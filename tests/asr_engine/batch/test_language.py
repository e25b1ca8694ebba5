"""Which language a window is read in, by what a model makes of it and of those around it."""

from __future__ import annotations

import numpy as np
import pytest

from asr_engine.audio import SAMPLE_RATE
from asr_engine.batch.language import language_of_each, languages_but_for, speech_samples, weigh
from asr_engine.ports import Window, WindowSpan
from asr_engine.results import LanguageGuess


def window(seconds: float, *, speech_s: float | None = None) -> Window:
    """A window with so much speech in its middle."""
    samples = np.zeros(round(seconds * SAMPLE_RATE), np.float32)
    if speech_s is None:
        return Window(0, samples)
    silence = (len(samples) - round(speech_s * SAMPLE_RATE)) // 2
    return Window(0, samples, (WindowSpan(0, 0, silence, len(samples) - silence),))


def test_a_long_window_counts_for_more() -> None:
    guess = weigh([window(30), window(10)], [{"en": 0.8, "de": 0.2}, {"en": 0.0, "de": 1.0}])
    assert guess.language == "en"
    assert guess.probability == pytest.approx(0.6)


def test_a_probability_is_at_most_one() -> None:
    assert weigh([window(1)] * 3, [{"en": 1.0000001}] * 3) == LanguageGuess("en", 1.0)


@pytest.mark.parametrize(
    ("scores", "languages"),
    [
        pytest.param([{"en": 0.9}, {"zh": 0.9}], ["en", "zh"], id="each its own"),
        pytest.param([{"en": 0.9}, {"la": 0.7, "en": 0.1}], ["en", "en"], id="nobody else's"),
        pytest.param([{"en": 0.9}, {"la": 0.8, "en": 0.1}], ["en", "la"], id="nobody else's, sure"),
        pytest.param([{"zh": 0.95}, {"zh": 0.55, "en": 0.45}], ["zh", "zh"], id="heard around it"),
        pytest.param([{"es": 0.95}, {"pt": 0.4, "es": 0.2}], ["es", "es"], id="sure of none"),
        pytest.param([{"es": 0.8}, {"pt": 0.4, "es": 0.2}], ["es", "en"], id="none is certain"),
    ],
)
def test_where_languages_mix_a_window_is_read_in_its_own(
    scores: list[dict[str, float]], languages: list[str]
) -> None:
    assert language_of_each(scores, otherwise="en") == languages


@pytest.mark.parametrize(
    ("one", "scores", "language"),
    [
        pytest.param(window(20, speech_s=15), {"zh": 0.95, "en": 0.05}, "zh", id="certain"),
        pytest.param(window(20, speech_s=15), {"zh": 0.85, "en": 0.15}, "en", id="likely"),
        pytest.param(window(20, speech_s=4), {"zh": 0.95, "en": 0.05}, "en", id="little speech"),
    ],
)
def test_only_what_is_certainly_another_language_is_read_in_it(
    one: Window, scores: dict[str, float], language: str
) -> None:
    assert languages_but_for([one], [scores], main="en") == [language]


def test_a_window_without_spans_is_all_speech() -> None:
    assert speech_samples(window(2)) == 2 * SAMPLE_RATE
    assert speech_samples(window(2, speech_s=1)) == SAMPLE_RATE
