"""What a stream says while it runs. Produced by the engine, carried by the protocol.

A partial may change and may be lost. A final never changes and is never lost: `utterance` counts
from 0 without holes among finals of one session, and `end_sample` is where the next one may begin.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from asr_engine.results import Word


class EndpointReason(StrEnum):
    """Why an utterance ended."""

    SILENCE = "silence"
    LENGTH = "length"
    GAP = "gap"
    PAUSE = "pause"
    IDLE = "idle"
    END_OF_AUDIO = "end_of_audio"


@dataclass(frozen=True, slots=True)
class Partial:
    """Text of the open utterance as of `end_ms`. `stable_words` leading words no longer change."""

    stream: str
    utterance: int
    start_ms: int
    end_ms: int
    text: str
    words: tuple[Word, ...] = ()
    stable_words: int = 0
    heard_ms: int = 0
    """The audio that the model had heard when it said so ends here."""
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Final:
    """Text of a closed utterance. `text` is never empty: an utterance without words gives none.

    `resume_sample` is the sample (session rate) from which a successor must hear the audio again.
    `speech_end_ms` is the true end of speech as voice activity saw it; `decided_at_s` the clock
    time of the endpoint decision, for the finalisation delay.
    """

    stream: str
    utterance: int
    start_ms: int
    end_ms: int
    text: str
    words: tuple[Word, ...]
    reason: EndpointReason
    resume_sample: int
    speech_end_ms: int
    language: str | None = None
    decided_at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An utterance closed without words, or silence went on: a successor may resume at
    `resume_sample`."""

    stream: str
    reason: EndpointReason
    resume_sample: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Audio that never came: [start_ms, end_ms) was heard as silence."""

    stream: str
    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class Lag:
    """The engine is `behind_ms` behind the audio that it holds for this stream."""

    stream: str
    behind_ms: int


@dataclass(frozen=True, slots=True)
class Ended:
    """All audio up to `end_sample` is finalised; nothing more will come for this stream."""

    stream: str
    end_sample: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The model failed and the stream is closed: open it again from `resume_sample`.

    `next_utterance` is the number that its next final will have.
    """

    stream: str
    next_utterance: int
    resume_sample: int


StreamEvent = Partial | Final | Endpoint | Gap | Lag | Ended | Failed
