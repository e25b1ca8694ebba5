"""Backend names to dotted paths, imported on use.

Nothing heavy is imported before a factory is called, so the web process and the tests stay light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import structlog

from asr_engine.errors import ModelError, ModelMissingError
from asr_engine.store import ModelStore

if TYPE_CHECKING:
    from asr_engine.config import EngineSettings
    from asr_engine.diarisation.port import SpeakerDiariser
    from asr_engine.ports import (
        BatchModel,
        LanguageModel,
        SpeechFinder,
        StreamingModel,
        VoiceActivityDetector,
    )

log = structlog.get_logger(__name__)

_WHISPER_LIVE = "asr_engine.backends.whisper_live:create"
_NEMO = "asr_engine.backends.cache_aware.loading:create"
_SILERO = "asr_engine.backends.silero:create"

LIVE_BACKENDS = {
    "nemo": _NEMO,
    "whisper": _WHISPER_LIVE,
    "scripted": "asr_engine.backends.scripted:create",
}
DETECTORS = {
    "nemo": _SILERO,
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
_KENLM = "asr_engine.backends.kenlm_model:create"
SPEAKER_BACKENDS = {
    "embedded": "asr_engine.backends.speakers.embedded:create",
    "sortformer": "asr_engine.backends.speakers.sortformer:create",
}


def live_backend(settings: EngineSettings) -> str:
    """The live backend's name, with `auto` resolved."""
    if settings.live_backend != "auto":
        return settings.live_backend
    return "nemo" if _has_model(settings, settings.nemo_model) else "whisper"


def speaker_backend(settings: EngineSettings) -> str:
    """The name of what tells speakers apart, with `auto` resolved; `none` where nothing does."""
    if settings.speaker_backend != "auto":
        return settings.speaker_backend
    return "sortformer" if _has_model(settings, settings.sortformer_model) else "embedded"


def streaming_model(settings: EngineSettings) -> StreamingModel:
    """The live model that `settings.live_backend` names, loaded. Raises ModelError."""
    model: StreamingModel = _create(LIVE_BACKENDS, live_backend(settings), settings)
    return model


def voice_activity(settings: EngineSettings) -> VoiceActivityDetector:
    """The voice activity detector that belongs to the live backend. Raises ModelError."""
    detector: VoiceActivityDetector = _create(DETECTORS, live_backend(settings), settings)
    return detector


def batch_model(settings: EngineSettings) -> BatchModel:
    """The batch model that `settings.batch_backend` names, loaded. Raises ModelError."""
    model: BatchModel = _create(BATCH_BACKENDS, settings.batch_backend, settings)
    return model


def speech_finder(settings: EngineSettings) -> SpeechFinder:
    """The speech finder that belongs to the batch backend. Raises ModelError."""
    finder: SpeechFinder = _create(SPEECH_FINDERS, settings.batch_backend, settings)
    return finder


def language_model(settings: EngineSettings) -> LanguageModel | None:
    """The language model that `settings.lm` names, loaded; None without one.

    One that is missing or cannot be read is left out with a warning: transcripts do without.
    """
    if not settings.lm:
        return None
    try:
        model: LanguageModel = _create({"kenlm": _KENLM}, "kenlm", settings)
    except ModelError as error:
        log.warning("language_model_left_out", model=settings.lm, reason=error.detail)
        return None
    return model


def speaker_diariser(settings: EngineSettings) -> SpeakerDiariser | None:
    """What `settings.speaker_backend` names, loaded; None for `none`. Raises ModelError."""
    name = speaker_backend(settings)
    if name == "none":
        return None
    diariser: SpeakerDiariser = _create(SPEAKER_BACKENDS, name, settings)
    return diariser


def _has_model(settings: EngineSettings, name: str) -> bool:
    if not name:
        return False
    try:
        ModelStore(settings.model_dir).path(name)
    except ModelMissingError:
        log.warning("nemo_model_missing", model=name)
        return False
    return True


def _create(paths: dict[str, str], name: str, settings: EngineSettings) -> Any:
    try:
        module, factory = paths[name].split(":")
    except KeyError:
        raise ModelError(f"no backend named {name!r}; choose from {', '.join(paths)}") from None
    return getattr(import_module(module), factory)(settings)
