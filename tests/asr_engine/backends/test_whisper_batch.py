"""Whisper reads windows aloud as words with times; it says nothing where nobody speaks."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.backends import silero, whisper_batch
from asr_engine.backends.whisper_batch import WhisperBatchModel
from asr_engine.batch.two_pass import transcribe
from asr_engine.config import engine_settings
from asr_engine.errors import UnsupportedLanguageError
from asr_engine.evaluation import count_errors
from asr_engine.ports import DecodeOptions, Window
from asr_engine.results import Segment, join_words
from tests.fakes.speech import ACCOUNT, PHONES, SILLY, Speech, silence

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def model() -> WhisperBatchModel:
    return whisper_batch.create(engine_settings())


def decode(
    model: WhisperBatchModel, windows: Sequence[FloatSamples], language: str = "en", beam: int = 1
) -> list[list[Segment]]:
    framed = [Window(0, samples) for samples in windows]
    options = DecodeOptions(beam_size=beam)
    return model.decode(framed, model.encode(framed), language=language, options=options)


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


def test_one_encoder_output_is_decoded_twice(model: WhisperBatchModel) -> None:
    """What the refine pass needs."""
    windows = [Window(0, ACCOUNT.samples())]
    encoded = model.encode(windows)
    for beam in (1, 5):
        ((segment,),) = model.decode(
            windows, encoded, language="en", options=DecodeOptions(beam_size=beam)
        )
        assert count_errors(ACCOUNT.text, segment.text, "en").errors <= 1


@pytest.mark.parametrize("speech", [ACCOUNT, PHONES])
def test_the_language_is_recognised(model: WhisperBatchModel, speech: Speech) -> None:
    windows = [Window(0, speech.samples()), Window(0, speech.samples())]
    guess = model.detect_language(windows, model.encode(windows))
    assert guess.language == speech.language
    assert 0.5 < guess.probability <= 1


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
        (group,) = transcribe(path, model=model, finder=finder, language=None)
        assert group.segments == ()
        assert group.language is None


def generated(tokens: list[int], *, score: float, no_speech: float) -> SimpleNamespace:
    return SimpleNamespace(sequences_ids=[tokens], scores=[score], no_speech_prob=no_speech)


class Says:
    """CTranslate2's model, with what its decoder says put into its mouth."""

    def __init__(self, model: Any, *answers: list[SimpleNamespace]) -> None:
        self._model, self._answers = model, list(answers)
        self.asked: list[dict[str, Any]] = []

    def generate(self, *args: Any, **options: Any) -> list[SimpleNamespace]:
        self.asked.append(options)
        return self._answers.pop(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def tokens(model: WhisperBatchModel, text: str) -> list[int]:
    return list(model._tokenizer("en").encode(text))


def test_text_where_nobody_spoke_is_left_out(
    model: WhisperBatchModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = [generated(tokens(model, " Thank you."), score=-1.4, no_speech=0.9)]
    monkeypatch.setattr(model._whisper, "model", Says(model._whisper.model, says))
    assert decode(model, [silence(3)]) == [[]]


def test_a_loop_is_decoded_again_without_repetition(
    model: WhisperBatchModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = [generated(tokens(model, " I am here." * 40), score=-0.1, no_speech=0.0)]
    mended = [generated(tokens(model, " I am here."), score=-0.3, no_speech=0.0)]
    fake = Says(model._whisper.model, loop, mended)
    monkeypatch.setattr(model._whisper, "model", fake)
    ((segment,),) = decode(model, [ACCOUNT.samples()])
    assert segment.text == "I am here."
    assert fake.asked[1]["no_repeat_ngram_size"] == 3


def test_what_loops_twice_is_noise(
    model: WhisperBatchModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = [generated(tokens(model, " I am here." * 40), score=-0.1, no_speech=0.0)]
    monkeypatch.setattr(model._whisper, "model", Says(model._whisper.model, loop, loop))
    assert decode(model, [ACCOUNT.samples()]) == [[]]
