"""Backend names to dotted paths, imported on use.

Nothing heavy is imported before a factory is called, so the web process and the tests stay light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from asr_engine.errors import ModelError

if TYPE_CHECKING:
    from asr_engine.config import EngineSettings
    from asr_engine.ports import (
        BatchModel,
        SpeechFinder,
        StreamingModel,
        VoiceActivityDetector,
    )

_WHISPER_LIVE = "asr_engine.backends.whisper_live:create"
_SILERO = "asr_engine.backends.silero:create"

LIVE_BACKENDS = {
    "auto": _WHISPER_LIVE,
    "whisper": _WHISPER_LIVE,
    "scripted": "asr_engine.backends.scripted:create",
}
DETECTORS = {
    "auto": _SILERO,
    "whisper": _SILERO,
    "scripted": "asr_engine.backends.scripted:create_detector",
}
BATCH_BACKENDS = {
    "whisper": "asr_engine.backends.whisper_batch:create",
    "scripted": "asr_engine.backends.scripted:create_batch",
}
SPEECH_FINDERS = {
    "whisper": "asr_engine.backends.silero:create_finder",
    "scripted": "asr_engine.backends.scripted:create_finder",
}


def streaming_model(settings: EngineSettings) -> StreamingModel:
    """The live model that `settings.live_backend` names, loaded. Raises ModelError."""
    model: StreamingModel = _create(LIVE_BACKENDS, settings.live_backend, settings)
    return model


def voice_activity(settings: EngineSettings) -> VoiceActivityDetector:
    """The voice activity detector that belongs to the live backend. Raises ModelError."""
    detector: VoiceActivityDetector = _create(DETECTORS, settings.live_backend, settings)
    return detector


def batch_model(settings: EngineSettings) -> BatchModel:
    """The batch model that `settings.batch_backend` names, loaded. Raises ModelError."""
    model: BatchModel = _create(BATCH_BACKENDS, settings.batch_backend, settings)
    return model


def speech_finder(settings: EngineSettings) -> SpeechFinder:
    """The speech finder that belongs to the batch backend. Raises ModelError."""
    finder: SpeechFinder = _create(SPEECH_FINDERS, settings.batch_backend, settings)
    return finder


def _create(paths: dict[str, str], name: str, settings: EngineSettings) -> Any:
    try:
        module, factory = paths[name].split(":")
    except KeyError:
        raise ModelError(f"no backend named {name!r}; choose from {', '.join(paths)}") from None
    return getattr(import_module(module), factory)(settings)
