"""Every error that the engine raises on purpose.

    EngineError
    ├── AudioError               the input cannot be used as audio
    │   ├── NotAudioError            no container that we accept
    │   ├── NoAudioTrackError        a container without an audio track
    │   ├── EmptyAudioError          no samples at all
    │   ├── BrokenAudioError         a container that cannot be decoded
    │   └── AudioTooLongError        longer than the configured limit
    ├── ModelError               a model is missing, unverified or unfit
    │   ├── ModelMissingError
    │   ├── ModelUnverifiedError
    │   ├── ModelFetchError
    │   └── UnsupportedLanguageError
    ├── AdmissionError           a stream is refused; retry later or elsewhere
    │   ├── NoFreeSlotError
    │   ├── OverloadedError
    │   └── NoEngineError
    ├── StreamError              misuse of a stream's verbs
    │   ├── UnknownStreamError
    │   ├── UnsupportedModeError
    │   └── BadPacketError
    └── CancelledError           the caller asked for the work to end

Each class has a stable `code` (part of the API), `is_retryable`, and `sentence`, which a person can
read. Messages never hold transcript text, names of people's recordings or a decoder's own words.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import ClassVar


class EngineError(Exception):
    """Base of the tree."""

    code: ClassVar[str] = "engine_error"
    is_retryable: ClassVar[bool] = False
    sentence: ClassVar[str] = "The speech engine reported a problem."

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail or self.sentence)
        self.detail = detail


class AudioError(EngineError):
    code = "audio_error"
    sentence = "This recording cannot be read as audio."


class NotAudioError(AudioError):
    code = "not_audio"
    sentence = "This is not an audio or video recording that we can read."


class NoAudioTrackError(AudioError):
    code = "no_audio_track"
    sentence = "This video has no audio track, so there is nothing to transcribe."


class EmptyAudioError(AudioError):
    code = "empty_audio"
    sentence = "This recording is empty: it holds no sound at all."


class BrokenAudioError(AudioError):
    code = "broken_audio"
    sentence = "This recording is damaged and cannot be decoded."


class AudioTooLongError(AudioError):
    code = "audio_too_long"
    sentence = "This recording is longer than this server accepts."


class ModelError(EngineError):
    code = "model_error"
    sentence = "A speech model cannot be used."


class ModelMissingError(ModelError):
    code = "model_missing"
    sentence = "A speech model is not installed. Run `manage.py models fetch`."


class ModelUnverifiedError(ModelError):
    code = "model_unverified"
    sentence = "A speech model does not match its pinned checksum and was not loaded."


class ModelFetchError(ModelError):
    code = "model_not_fetched"
    is_retryable = True
    sentence = "A speech model could not be fetched."


class UnsupportedLanguageError(ModelError):
    code = "unsupported_language"
    sentence = "The running speech model does not know this language."


class AdmissionError(EngineError):
    code = "not_admitted"
    is_retryable = True
    sentence = "The speech engine cannot take another stream now."


class NoFreeSlotError(AdmissionError):
    code = "no_free_slot"
    sentence = "All live places are taken. Try again when a session has ended."


class OverloadedError(AdmissionError):
    code = "overloaded"
    sentence = "The speech engine is too busy to keep another session on time."


class NoEngineError(AdmissionError):
    code = "no_engine"
    sentence = "No speech engine is running. It may be restarting; try again in a moment."


class StreamError(EngineError):
    code = "stream_error"
    sentence = "The audio stream was used in a wrong way."


class UnknownStreamError(StreamError):
    code = "unknown_stream"


class UnsupportedModeError(StreamError):
    code = "unsupported_mode"
    sentence = "The running speech model does not offer this speed (latency mode)."


class BadPacketError(StreamError):
    code = "bad_packet"
    sentence = "A packet of audio could not be understood."


class CancelledError(EngineError):
    code = "cancelled"
    sentence = "The work was cancelled."


def place_of(error: BaseException) -> str:
    """`module.py:line` where a foreign error was raised: what a log may say of it beside its type,
    since its message may hold what was spoken.
    """
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
