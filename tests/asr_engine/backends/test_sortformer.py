"""Sortformer chunk by chunk hears what NeMo hears in the whole recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from asr_engine.audio import SAMPLE_RATE
from asr_engine.backends.speakers import sortformer
from asr_engine.backends.speakers.sortformer import SortformerDiariser, create
from asr_engine.config import EngineSettings
from asr_engine.diarisation.port import Hearing
from asr_engine.errors import ModelError, ModelMissingError
from asr_engine.store import ModelStore
from tests.fakes.sortformer import tiny_sortformer


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_sortformer()


@pytest.mark.parametrize("seconds", [0.4, 3.0, 11.37])
def test_chunks_hear_what_the_whole_recording_holds(
    model: Any, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = np.random.default_rng(1).normal(0, 0.1, int(seconds * SAMPLE_RATE))
    samples = noise.astype(np.float32)
    with torch.inference_mode():
        whole = model(torch.from_numpy(samples)[None], torch.tensor([len(samples)]))[0].numpy()
    # Random weights speak at any time: the middle of what they say divides it.
    level = float(np.median(whole))
    monkeypatch.setattr(sortformer, "SPEAKING", level)
    diariser = SortformerDiariser(model, name="tiny")
    steps = list(diariser._steps(np.array_split(samples, 7)))
    heard = np.concatenate([speaking for _, speaking in steps])
    count = min(len(whole), len(heard))
    assert len(whole) - count <= 1
    is_clear = np.abs(whole[:count] - level) > 1e-4
    assert is_clear.mean() > 0.8
    assert np.array_equal(heard[:count][is_clear], (whole[:count] > level)[is_clear])


def test_turns_are_noted_when_all_is_heard(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sortformer, "SPEAKING", 0.0)
    hearing = Hearing()
    diariser = SortformerDiariser(model, name="tiny")
    positions = list(diariser.listen(hearing, [np.full(5 * SAMPLE_RATE, 0.1, np.float32)]))
    assert positions == sorted(positions)
    assert hearing.next_sample == positions[-1] == 5 * SAMPLE_RATE
    turns = diariser.turns(Hearing.from_json(hearing.as_json()), speakers=None)
    assert {turn.speaker for turn in turns} == {"1", "2", "3", "4"}
    assert all((turn.start_ms, turn.end_ms // 100) == (0, 50) for turn in turns)


def test_nothing_is_heard_in_nothing(model: Any) -> None:
    hearing = Hearing()
    assert list(SortformerDiariser(model, name="tiny").listen(hearing, [])) == [0]
    assert hearing.turns == []


def test_a_model_that_cannot_stream_is_refused() -> None:
    with pytest.raises(ModelError, match="streaming"):
        SortformerDiariser(tiny_sortformer(can_stream=False), name="whole")


def test_a_model_of_the_store_is_loaded(model: Any, tmp_path: Path) -> None:
    model.save_to(str(tmp_path / "tiny.nemo"))
    ModelStore(tmp_path / "models").add("tiny", tmp_path / "tiny.nemo")
    settings = EngineSettings(model_dir=tmp_path / "models", sortformer_model="tiny", device="cpu")
    assert create(settings).name == "tiny"
    with pytest.raises(ModelMissingError):
        create(EngineSettings(model_dir=tmp_path / "models"))
