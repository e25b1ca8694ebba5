from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
import structlog

from asr_engine.backends.scripted import ScriptedModel
from asr_engine.config import EngineSettings
from asr_engine.errors import ModelError, OverloadedError
from asr_engine.ports import Chunk, Hypothesis
from asr_engine.worker import __main__ as worker
from tests.fakes.engines import CountingModel, FailingModel, VirtualClock, scripted_engine


def test_a_rehearsal_leaves_the_engine_as_it_was() -> None:
    engine = scripted_engine()
    worker.rehearse(engine)
    assert engine.free_slots == engine.slots
    assert engine.take_events() == []


def test_a_rehearsal_shows_what_larger_batches_cost() -> None:
    model = CountingModel()
    worker.rehearse(scripted_engine(model, slots=7))
    assert [len(step) for step in model.steps] == [*6 * [1], *3 * [2], *3 * [4], *3 * [7]]


def test_a_model_that_fails_its_rehearsal_does_not_serve() -> None:
    model = FailingModel()
    model.broken = {"rehearsal-0"}
    with pytest.raises(ModelError):
        worker.rehearse(scripted_engine(model))


class SlowModel(ScriptedModel):
    """Every step takes `base_s` and `stream_s` for each of its streams."""

    def __init__(self, clock: VirtualClock, *, base_s: float, stream_s: float) -> None:
        super().__init__(slots=60)
        self._clock, self._base_s, self._stream_s = clock, base_s, stream_s

    def step(self, chunks: Sequence[Chunk]) -> list[Hypothesis]:
        self._clock.advance(self._base_s + self._stream_s * len(chunks))
        return super().step(chunks)


def admitted(*, base_s: float, stream_s: float) -> int:
    """How many streams are let in that come one after the other, a second apart, up to the slots.

    Their audio comes in real time.
    """
    clock = VirtualClock()
    engine = scripted_engine(SlowModel(clock, base_s=base_s, stream_s=stream_s), clock=clock)
    worker.rehearse(engine)
    packet = np.zeros(2560, dtype=np.float32)
    began: dict[str, float] = {}
    sent: Counter[str] = Counter()
    while len(began) < engine.slots:
        try:
            engine.check_admission()
        except OverloadedError:
            break
        stream = str(len(began))
        engine.open_stream(stream)
        began[stream] = clock.now()
        until = clock.now() + 1
        while clock.now() < until:
            for name, at_s in began.items():
                due = int((clock.now() - at_s) / 0.16)
                while sent[name] < due:
                    engine.accept_audio(name, 2560 * sent[name], packet)
                    sent[name] += 1
            if not engine.step():
                clock.advance(0.01)
    return len(began)


def test_streams_are_refused_before_any_would_be_late() -> None:
    """A step of n streams takes 20 ms and n times 10: 11 of them take 130 of 160 ms."""
    assert admitted(base_s=0.020, stream_s=0.010) in (9, 10, 11)


def test_a_model_whose_step_hardly_grows_fills_its_slots() -> None:
    assert admitted(base_s=0.025, stream_s=0.0005) == 60


def test_a_model_that_is_too_slow_for_two_takes_one() -> None:
    """An idle engine admits always: there is nobody to be made late."""
    assert admitted(base_s=0.100, stream_s=0.050) == 1
    assert admitted(base_s=0.200, stream_s=0.050) == 1


def test_missing_servers_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "engine_settings", EngineSettings)
    monkeypatch.setattr(worker, "configure_log", lambda: None)
    monkeypatch.delenv("ASR_BROKER_URL", raising=False)
    with structlog.testing.capture_logs() as logs:
        assert worker.main() == 2
    assert logs[0]["needed"] == ["ASR_BROKER_URL", "ASR_AUDIO_URL"]


def test_an_unknown_backend_is_told_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = EngineSettings(
        broker_url="redis://127.0.0.1:1/0", audio_url="redis://127.0.0.1:1/0", live_backend="no"
    )
    monkeypatch.setattr(worker, "engine_settings", lambda: settings)
    monkeypatch.setattr(worker, "configure_log", lambda: None)
    with structlog.testing.capture_logs() as logs:
        assert worker.main() == 1
    assert [entry["event"] for entry in logs] == ["model_not_loaded"]
