"""Live evaluation: one recording through the streaming engine as if it were spoken now.

The audio clock is simulated: packets arrive when they would have been spoken, a model step takes
the time that it really took, and idle time is skipped. Delays are those of a live session with one
stream on an otherwise idle machine, without sockets and broker; the run is as fast as the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from asr_engine.config import EngineSettings
from asr_engine.results import Segment


@dataclass(frozen=True, slots=True)
class LiveResult:
    """What a live session would have shown.

    `first_partial_ms` is first speech sample spoken → first partial with words; `final_delays_ms`
    true end of speech → final, one per utterance, the silence rule included;
    `finalisation_delays_ms` endpoint decision → final. `rtf` is processing time / audio time.
    """

    text: str
    segments: tuple[Segment, ...]
    audio_ms: int
    rtf: float
    first_partial_ms: int | None
    final_delays_ms: tuple[int, ...]
    finalisation_delays_ms: tuple[int, ...]
    language: str | None


def transcribe_live(path: Path, *, language: str | None, settings: EngineSettings) -> LiveResult:
    """Stream one recording in packets of 200 ms.

    Raises AudioError where it cannot be decoded, ModelError where no model is present.
    """
    raise NotImplementedError(path)
