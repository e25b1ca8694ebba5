"""Which model is loaded, and what is said where none can be."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from asr_engine import registry
from asr_engine.backends.cache_aware import loading
from asr_engine.backends.cache_aware.model import CacheAwareModel
from asr_engine.config import EngineSettings
from asr_engine.errors import ModelError, ModelMissingError
from asr_engine.store import ModelStore
from tests.fakes.digits import DIGITS_MODEL


@pytest.fixture
def store(tmp_path: Path) -> Path:
    ModelStore(tmp_path).add("digits", DIGITS_MODEL)
    return tmp_path


@pytest.mark.filterwarnings("ignore")
def test_auto_takes_a_named_model_that_is_installed(store: Path) -> None:
    settings = EngineSettings(model_dir=store, nemo_model="digits", slots=5)
    model = registry.streaming_model(settings)
    assert isinstance(model, CacheAwareModel)
    assert model.capabilities.name == "digits"
    assert model.capabilities.slots == 5
    assert model.capabilities.default_mode_ms == 160
    assert model.capabilities.mixes_chunks


def test_auto_falls_back_to_whisper(tmp_path: Path) -> None:
    for name in ("", "no-such-model"):
        settings = EngineSettings(model_dir=tmp_path, nemo_model=name)
        assert registry.live_backend(settings) == "whisper"


def test_a_backend_that_was_asked_for_is_never_replaced(tmp_path: Path) -> None:
    for name in ("", "no-such-model"):
        settings = EngineSettings(model_dir=tmp_path, live_backend="nemo", nemo_model=name)
        with pytest.raises(ModelMissingError):
            registry.streaming_model(settings)


def test_without_nemo_the_packages_that_it_needs_are_named(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"requirements/nemo\.txt"):
        loading.create(EngineSettings(model_dir=store, nemo_model="digits"))
