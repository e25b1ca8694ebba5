"""Live Whisper beyond the law of the port: languages, long utterances, what is no speech."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from asr_engine.audio import SAMPLE_RATE, FloatSamples, samples_to_ms
from asr_engine.backends.whisper_live import MAX_BUFFER_S, LiveWhisper, create
from asr_engine.config import EngineSettings, engine_settings
from asr_engine.errors import ModelMissingError, UnsupportedLanguageError
from asr_engine.evaluation import count_errors
from asr_engine.ports import Chunk, Hypothesis
from asr_engine.results import join_words
from tests.fakes.speech import ACCOUNT, PHONES, SILLY, Speech, silence

MODE_MS = 560


def test_without_a_model_the_command_that_mends_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelMissingError) as caught:
        create(EngineSettings(model_dir=tmp_path))
    assert "models fetch" in caught.value.sentence


@pytest.fixture(scope="module")
def loaded() -> LiveWhisper:
    return create(engine_settings())


@pytest.fixture
def model(loaded: LiveWhisper) -> Iterator[LiveWhisper]:
    yield loaded
    loaded.close("s")


def hear(
    model: LiveWhisper, audio: FloatSamples, *, start_sample: int = 0, mode_ms: int = MODE_MS
) -> list[Hypothesis]:
    size = model.capabilities.chunk_samples[mode_ms]
    heard = []
    for position in range(0, len(audio), size):
        chunk = Chunk("s", audio[position : position + size], start_sample + position)
        heard += model.step([chunk])
    return heard + model.finish(["s"])


def text(hypothesis: Hypothesis) -> str:
    return join_words(hypothesis.words)


def assert_heard_once(said: str, *, times: int) -> None:
    """ACCOUNT, as often as it was said: no word lost or doubled; tiny.en mishears one."""
    count = count_errors(" ".join([ACCOUNT.text] * times), said, "en")
    assert (count.deletions, count.insertions) == (0, 0)
    assert count.substitutions <= times


def padded(speech: Speech) -> FloatSamples:
    return np.concatenate((silence(0.3), speech.samples(), silence(0.3)))


@pytest.mark.models
def test_mandarin_is_heard_and_written_without_spaces(model: LiveWhisper) -> None:
    model.open("s", language="zh", mode_ms=MODE_MS)
    heard = hear(model, padded(PHONES))
    assert heard[-1].language == "zh"
    assert " " not in text(heard[-1])
    assert count_errors(PHONES.text, text(heard[-1]), "zh").errors <= 4
    assert any(item.stable_words for item in heard[:-1])


@pytest.mark.models
@pytest.mark.parametrize("speech", [ACCOUNT, PHONES], ids=lambda speech: speech.language)
def test_the_language_is_found_on_the_first_speech(model: LiveWhisper, speech: Speech) -> None:
    model.open("s", language=None, mode_ms=MODE_MS)
    assert hear(model, padded(speech))[-1].language == speech.language


@pytest.mark.models
def test_each_utterance_is_in_the_language_heard_in_it(model: LiveWhisper) -> None:
    """Speakers switch: without a chosen language the first utterance does not bind the others."""
    model.open("s", language=None, mode_ms=MODE_MS)
    heard = [hear(model, padded(speech))[-1] for speech in (ACCOUNT, PHONES, ACCOUNT)]
    assert [hypothesis.language for hypothesis in heard] == ["en", "zh", "en"]
    assert count_errors(PHONES.text, text(heard[1]), "zh").errors <= 4
    assert_heard_once(text(heard[2]), times=1)


@pytest.mark.models
def test_unknown_language_is_refused(model: LiveWhisper) -> None:
    with pytest.raises(UnsupportedLanguageError):
        model.open("s", language="tlh", mode_ms=MODE_MS)


@pytest.mark.models
def test_speech_longer_than_the_buffer_is_heard_once(model: LiveWhisper) -> None:
    """Agreed text leaves the buffer: nothing is lost or doubled at the cut."""
    pause = silence(0.4)
    audio = np.concatenate(
        [pause, *(part for _ in range(5) for part in (ACCOUNT.samples(), pause))]
    )
    audio = audio[: 28 * SAMPLE_RATE]
    model.open("s", language="en", mode_ms=1120)
    last = hear(model, audio, start_sample=SAMPLE_RATE, mode_ms=1120)[-1]
    assert len(audio) > 2 * MAX_BUFFER_S * SAMPLE_RATE
    assert_heard_once(text(last), times=5)
    starts = [word.start_ms for word in last.words]
    assert starts == sorted(starts)
    assert last.words[-1].end_ms <= samples_to_ms(SAMPLE_RATE + len(audio))


@pytest.mark.models
def test_noise_and_silence_say_nothing(model: LiveWhisper) -> None:
    """Even where voice activity let it through."""
    noise = np.random.default_rng(3).normal(0, 0.01, 6 * SAMPLE_RATE).astype(np.float32)
    tone = 0.1 * np.sin(2 * np.pi * 440 * np.arange(6 * SAMPLE_RATE) / SAMPLE_RATE)
    model.open("s", language="en", mode_ms=1120)
    for audio in (silence(6), noise, tone.astype(np.float32)):
        assert [text(item) for item in hear(model, audio, mode_ms=1120) if item.words] == []


@pytest.mark.models
def test_a_repeated_word_is_heard_as_often_as_it_is_said(model: LiveWhisper) -> None:
    audio = np.concatenate((silence(0.3), *[SILLY.samples(), silence(0.2)] * 2))
    model.open("s", language="en", mode_ms=MODE_MS)
    last = text(hear(model, audio)[-1]).lower()
    assert last.count("silly") == 2


@pytest.mark.models
def test_an_utterance_shorter_than_a_step_is_heard(model: LiveWhisper) -> None:
    model.open("s", language="en", mode_ms=1120)
    audio = padded(SILLY)[:SAMPLE_RATE]
    model.step([Chunk("s", audio, 0)])
    assert "you" in text(model.finish(["s"])[0]).lower()


@pytest.mark.models
def test_a_lagging_stream_takes_several_chunks_at_once(model: LiveWhisper) -> None:
    model.open("s", language="en", mode_ms=MODE_MS)
    size = model.capabilities.chunk_samples[MODE_MS]
    audio = padded(ACCOUNT)
    model.step([Chunk("s", audio[: 4 * size], 0)])
    model.step([Chunk("s", audio[4 * size :], 4 * size)])
    assert_heard_once(text(model.finish(["s"])[0]), times=1)
