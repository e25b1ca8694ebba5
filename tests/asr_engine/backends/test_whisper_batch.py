"""Whisper reads windows aloud as words with times; it says nothing where nobody speaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.backends import silero, whisper_batch
from asr_engine.backends.whisper_batch import WhisperBatchModel
from asr_engine.batch import guards
from asr_engine.batch.language import weigh
from asr_engine.batch.two_pass import TwoPassOptions, transcribe
from asr_engine.config import engine_settings
from asr_engine.errors import UnsupportedLanguageError
from asr_engine.evaluation import count_errors
from asr_engine.ports import DecodeOptions, Onward, Window
from asr_engine.results import Segment, join_words
from tests.fakes.speech import ACCOUNT, PHONES, SILLY, Speech, silence

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def model() -> WhisperBatchModel:
    return whisper_batch.create(engine_settings())


BEAM = DecodeOptions(beam_size=5, candidates=5)


def decode(
    model: WhisperBatchModel, windows: Sequence[FloatSamples], language: str = "en"
) -> list[list[Segment]]:
    """The best candidate of each window, timed."""
    framed = [Window(0, samples) for samples in windows]
    encoded, languages = model.encode(framed), [language] * len(framed)
    heard = model.decode(framed, encoded, languages=languages, options=DecodeOptions())
    return model.time_words(framed, encoded, [one[0] for one in heard], languages=languages)


def test_it_reads_speech(model: WhisperBatchModel) -> None:
    heard = decode(model, [SILLY.samples(), ACCOUNT.samples()])
    for speech, (segment,) in zip((SILLY, ACCOUNT), heard, strict=True):
        assert count_errors(speech.text, segment.text, "en").errors <= 1


def test_words_are_timed_and_make_up_the_text(model: WhisperBatchModel) -> None:
    ((segment,),) = decode(model, [ACCOUNT.samples()])
    assert join_words(segment.words) == segment.text
    assert all(0 <= word.start_ms <= word.end_ms <= 5_100 for word in segment.words)
    assert all(word.confidence is not None and 0 <= word.confidence <= 1 for word in segment.words)
    assert segment.mean_log_probability is not None
    assert segment.no_speech_probability is not None


def test_chinese_words_have_no_spaces(model: WhisperBatchModel) -> None:
    ((segment,),) = decode(model, [PHONES.samples()], language="zh")
    assert " " not in segment.text
    assert count_errors(PHONES.text, segment.text, "zh").errors <= 3


def test_candidates_are_different_texts_the_most_probable_first(model: WhisperBatchModel) -> None:
    windows = [Window(0, ACCOUNT.samples())]
    encoded = model.encode(windows)
    (greedy,) = model.decode(windows, encoded, languages=["en"], options=DecodeOptions())
    (beam,) = model.decode(windows, encoded, languages=["en"], options=BEAM)
    assert len(greedy) == 1
    assert len(beam) > 1
    assert count_errors(ACCOUNT.text, beam[0].text, "en").errors <= 1
    scores = [candidate.mean_log_probability for candidate in beam]
    assert scores == sorted(scores, reverse=True)
    spoken = {"".join(filter(str.isalnum, candidate.text.casefold())) for candidate in beam}
    assert len(spoken) == len(beam)


@pytest.mark.parametrize("speech", [ACCOUNT, PHONES])
def test_the_language_is_recognised(model: WhisperBatchModel, speech: Speech) -> None:
    windows = [Window(0, speech.samples()), Window(0, speech.samples())]
    guess = weigh(windows, model.language_scores(windows, model.encode(windows)))
    assert guess.language == speech.language
    assert 0.5 < guess.probability <= 1


def test_each_window_may_have_its_own_language(model: WhisperBatchModel) -> None:
    windows = [Window(0, ACCOUNT.samples()), Window(0, PHONES.samples())]
    encoded, languages = model.encode(windows), ["en", "zh"]
    heard = model.decode(windows, encoded, languages=languages, options=DecodeOptions())
    timed = model.time_words(windows, encoded, [one[0] for one in heard], languages=languages)
    for speech, (segment,) in zip((ACCOUNT, PHONES), timed, strict=True):
        assert segment.language == speech.language
        assert count_errors(speech.text, segment.text, speech.language).errors <= 3


@pytest.mark.parametrize("first", [ACCOUNT, PHONES], ids=["English", "Chinese"])
def test_it_goes_on_from_a_place_told_what_was_said_before(
    model: WhisperBatchModel, first: Speech
) -> None:
    second, language = SILLY if first is ACCOUNT else PHONES, first.language
    windows = [Window(0, np.concatenate([first.samples(), silence(1), second.samples()]))]
    encoded = model.encode(windows)
    ((before,),) = decode(model, [first.samples()], language=language)
    onward = Onward(before.words, len(first.samples()))
    ((candidate,),) = model.decode_onward(
        windows, encoded, [onward], languages=[language], options=DecodeOptions()
    )
    assert candidate.text.startswith(before.text)
    assert count_errors(first.text + second.text, candidate.text, language).errors <= 6
    ((timed,),) = model.time_words(windows, encoded, [candidate], languages=[language])
    assert timed.text == candidate.text
    new = timed.words[len(before.words) :]
    assert all(word.end_ms > len(first.samples()) // 16 for word in new)


@pytest.mark.parametrize("speech", [SILLY, ACCOUNT, PHONES], ids=["silly", "account", "phones"])
def test_where_nothing_follows_nothing_goes_on(model: WhisperBatchModel, speech: Speech) -> None:
    noise = np.random.default_rng(0).normal(0, 0.03, 6 * SAMPLE_RATE).astype(np.float32)
    windows = [Window(0, np.concatenate([speech.samples(), noise]))]
    ((before,),) = decode(model, [speech.samples()], language=speech.language)
    onward = Onward(before.words, len(speech.samples()) + SAMPLE_RATE // 2)
    (heard,) = model.decode_onward(
        windows, model.encode(windows), [onward], languages=[speech.language], options=BEAM
    )
    assert heard
    assert not any(guards.goes_on(before.text, candidate) for candidate in heard)


def test_an_unknown_language_is_refused(model: WhisperBatchModel) -> None:
    with pytest.raises(UnsupportedLanguageError):
        decode(model, [silence(1)], language="tlh")


def test_silence_and_noise_reach_no_model(model: WhisperBatchModel, tmp_path: Any) -> None:
    from tests.fakes.audio import wav_bytes

    noise = np.random.default_rng(0).normal(0, 0.05, 20 * SAMPLE_RATE).astype(np.float32)
    finder = silero.create_finder(engine_settings())
    for samples in (silence(20), noise):
        path = tmp_path / "source.bin"
        path.write_bytes(wav_bytes(samples))
        for group in transcribe(path, model=model, finder=finder, options=TwoPassOptions()):
            assert group.segments == ()
            assert group.language is None
