"""The language prompt of multilingual models: told per stream, and heard."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from omegaconf import OmegaConf

from asr_engine.backends.cache_aware.languages import PromptLanguages
from asr_engine.backends.cache_aware.model import CacheAwareModel
from asr_engine.backends.cache_aware.nemo import CTC, RNNT, NemoNetwork
from asr_engine.errors import ModelError, UnsupportedLanguageError
from asr_engine.ports import Chunk
from asr_engine.results import join_words
from tests.fakes.digits import digits, digits_model, padded, restored
from tests.fakes.nemo_pipeline import build_pipeline, frames_of
from tests.fakes.prompted import DEAF_TO, write_prompted_model

CHUNK = 2560


@pytest.fixture(scope="module")
def prompted_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_prompted_model(tmp_path_factory.mktemp("prompted"))


def texts(network: NemoNetwork, languages: list[str | None]) -> list[str]:
    """What streams of the same recording say, each in its language, all in one batch."""
    model = CacheAwareModel(network, name="digits")
    audio = padded(digits("seen")[0].samples(), CHUNK)
    names = [f"s{index}" for index in range(len(languages))]
    for name, language in zip(names, languages, strict=True):
        model.open(name, language=language, mode_ms=160)
    for start in range(0, len(audio), CHUNK):
        model.step([Chunk(name, audio[start : start + CHUNK], start) for name in names])
    return [join_words(hypothesis.words) for hypothesis in model.finish(names)]


@pytest.mark.parametrize("decoder", [RNNT, CTC])
def test_each_stream_of_a_batch_is_heard_in_its_language(prompted_file: Path, decoder: str) -> None:
    plain = NemoNetwork(digits_model(), decoder=decoder, slots=1, batch_limit=1)
    model = restored(prompted_file)
    network = NemoNetwork(model, decoder=decoder, slots=4, batch_limit=4)
    english = texts(plain, ["en"])[0]
    assert len(english.split()) >= 7
    first, deaf, *others = texts(network, ["en", "de", "zh", None])
    assert [first, *others] == [english] * 3
    assert len(deaf.split()) < 3, "its frames are all alike: there is nothing to hear"


def test_languages_of_the_prompt_are_offered(prompted_file: Path) -> None:
    network = NemoNetwork(restored(prompted_file), slots=1, batch_limit=1)
    assert network.traits.languages == ("de", "en", "zh")
    assert network.traits.can_detect_language
    with pytest.raises(UnsupportedLanguageError):
        network.reset(0, language="fr")


def test_a_model_without_a_prompt_takes_any_language() -> None:
    network = NemoNetwork(digits_model(), slots=1, batch_limit=1)
    network.reset(0, language="fr")
    assert network.traits.languages == ()


def model_with(dictionary: dict[str, int]) -> Any:
    return SimpleNamespace(
        concat=True,
        cfg=OmegaConf.create({"model_defaults": {"prompt_dictionary": dictionary}}),
    )


def test_the_main_region_of_a_language_is_taken() -> None:
    languages = PromptLanguages.of(
        model_with({"en-GB": 0, "en-US": 1, "de-AT": 2, "de-DE": 3, "pt-BR": 4, "ja": 5})
    )
    assert [languages.prompt(code) for code in ("en", "de", "pt", "ja")] == [1, 3, 4, 5]
    assert not languages.can_detect
    assert languages.prompt(None) == 1, "English where nothing is chosen and nothing is detected"


def test_a_prompted_model_that_names_no_language_is_refused() -> None:
    with pytest.raises(ModelError):
        PromptLanguages.of(model_with({}))


def test_fault_nemos_pipeline_drops_the_prompt(prompted_file: Path) -> None:
    """NeMo 3.0.0. When this fails NeMo has mended it; our own conditioning stays, since it is told
    per stream."""
    from nemo.collections.asr.inference.streaming.framing.request_options import ASRRequestOptions

    pipeline = build_pipeline(prompted_file, decoder=RNNT, att_context_size=[70, 1], slots=1)
    requests = frames_of(0, padded(digits("seen")[0].samples(), CHUNK), CHUNK)
    object.__setattr__(requests[0], "options", ASRRequestOptions(language_code=DEAF_TO))
    said = "".join(pipeline.transcribe_step([request])[0].final_transcript for request in requests)
    assert len(said.split()) >= 7
