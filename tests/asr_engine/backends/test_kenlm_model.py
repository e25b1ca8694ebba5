"""A language model knows which of two texts is more usual; without one nothing stops."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from asr_engine import registry
from asr_engine.backends import kenlm_model
from asr_engine.config import EngineSettings
from asr_engine.errors import ModelError
from asr_engine.store import ModelStore

ARPA = """\\data\\
ngram 1=5
ngram 2=2

\\1-grams:
-1.0\t<unk>
-99\t<s>\t-0.3
-1.0\t</s>
-0.6\tmister\t-0.3
-2.0\thale

\\2-grams:
-0.2\tmister hale
-0.5\t<s> mister

\\end\\
"""


@pytest.fixture
def settings(tmp_path: Path) -> EngineSettings:
    (tmp_path / "own.arpa").write_text(ARPA)
    store = ModelStore(tmp_path / "models")
    store.add("own", tmp_path / "own.arpa")
    return EngineSettings(model_dir=tmp_path / "models", lm="own")


def test_what_is_usual_is_more_probable(settings: EngineSettings) -> None:
    pytest.importorskip("kenlm", reason="requirements/lm.txt is not installed")
    model = kenlm_model.create(settings)
    assert model.log_probability(["mister", "hale"]) == pytest.approx(-0.8 * math.log(10), abs=1e-4)
    assert model.log_probability(["mister", "hail"]) < model.log_probability(["mister", "hale"])
    assert model.log_probability([]) == 0


def test_a_text_is_asked_for_without_the_ends_of_a_sentence(
    settings: EngineSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, dict[str, bool]]] = []

    def score(text: str, **options: bool) -> float:
        asked.append((text, options))
        return -2.0

    def load(path: str) -> Any:
        assert Path(path).read_text() == ARPA
        return SimpleNamespace(score=score)

    monkeypatch.setitem(sys.modules, "kenlm", SimpleNamespace(Model=load))
    model = registry.language_model(settings)
    assert model is not None
    assert model.log_probability(["mister", "hale"]) == pytest.approx(-2 * math.log(10))
    assert asked == [("mister hale", {"bos": False, "eos": False})]


@pytest.mark.parametrize("name", ["", "missing", "whisper-base"])
def test_one_that_is_not_there_is_left_out(settings: EngineSettings, name: str) -> None:
    changed = settings.model_copy(update={"lm": name})
    assert registry.language_model(changed) is None


def test_without_the_library_it_is_left_out(
    settings: EngineSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kenlm", None)
    with pytest.raises(ModelError, match=r"requirements/lm\.txt"):
        kenlm_model.create(settings)
    assert registry.language_model(settings) is None
