from __future__ import annotations

import pytest
import structlog

from asr_engine.config import EngineSettings
from asr_engine.errors import ModelError
from asr_engine.worker import __main__ as worker
from tests.fakes.engines import FailingModel, scripted_engine


def test_a_rehearsal_leaves_the_engine_as_it_was() -> None:
    engine = scripted_engine()
    worker.rehearse(engine)
    assert engine.free_slots == engine.slots
    assert engine.take_events() == []


def test_a_model_that_fails_its_rehearsal_does_not_serve() -> None:
    model = FailingModel()
    model.broken = {"rehearsal"}
    with pytest.raises(ModelError):
        worker.rehearse(scripted_engine(model))


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
