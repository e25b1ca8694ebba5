from __future__ import annotations

import subprocess
import sys

import pytest

from asr_engine import registry
from asr_engine.backends.scripted import ScriptedBatchModel, ScriptedDetector, ScriptedModel
from asr_engine.config import EngineSettings
from asr_engine.errors import ModelError

SCRIPTED = EngineSettings(live_backend="scripted", batch_backend="scripted", slots=3)


def test_scripted_names_give_scripted_models() -> None:
    assert isinstance(registry.streaming_model(SCRIPTED), ScriptedModel)
    assert isinstance(registry.voice_activity(SCRIPTED), ScriptedDetector)
    assert isinstance(registry.batch_model(SCRIPTED), ScriptedBatchModel)
    assert isinstance(registry.speech_finder(SCRIPTED), ScriptedDetector)


def test_settings_reach_the_factory() -> None:
    assert registry.streaming_model(SCRIPTED).capabilities.slots == 3


def test_unknown_name_is_refused_with_the_choices() -> None:
    with pytest.raises(ModelError, match="scripted"):
        registry.streaming_model(EngineSettings(live_backend="no-such-backend"))


def test_importing_the_registry_loads_no_heavy_library() -> None:
    """A web process that names a backend must not pay for it."""
    program = (
        "import sys, asr_engine.registry\n"
        "heavy = {'torch', 'ctranslate2', 'onnxruntime', 'faster_whisper'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert found.stdout.strip() == b"[]"
