"""What is asked of a diariser, and what it notes down while it listens."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from asr_engine.audio import FloatSamples


@dataclass(frozen=True, slots=True)
class Turn:
    """A stretch in which one speaker talks; turns of different speakers may overlap.

    `speaker` is a label: "1" for who is heard first, and so on.
    """

    start_ms: int
    end_ms: int
    speaker: str


@dataclass(frozen=True, slots=True)
class Voice:
    """One voice in one window of the recording: when it speaks there, and its voiceprint.

    `spans` are (start_ms, end_ms) in the recording. `voiceprint` is float32 [n] of length 1;
    `alone_ms` is how long the voice was heard without others, by which a voiceprint is trusted.
    """

    window: int
    spans: tuple[tuple[int, int], ...]
    alone_ms: int
    voiceprint: NDArray[np.float32]


@dataclass(slots=True)
class Hearing:
    """All that has been noted of a recording up to `next_sample`, from where listening goes on.

    A diariser notes either voices, which become speakers at the end, or turns.
    """

    next_sample: int = 0
    windows: int = 0
    voices: list[Voice] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """JSON-able; about 600 bytes a voice. Voiceprints keep half of their precision."""
        return {
            "next_sample": self.next_sample,
            "windows": self.windows,
            "voices": [
                [
                    voice.window,
                    [list(span) for span in voice.spans],
                    voice.alone_ms,
                    base64.b85encode(voice.voiceprint.astype("<f2").tobytes()).decode(),
                ]
                for voice in self.voices
            ],
            "turns": [asdict(turn) for turn in self.turns],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Hearing:
        return cls(
            next_sample=data["next_sample"],
            windows=data["windows"],
            voices=[
                Voice(
                    window,
                    tuple((start, end) for start, end in spans),
                    alone_ms,
                    np.frombuffer(base64.b85decode(voiceprint), "<f2").astype(np.float32),
                )
                for window, spans, alone_ms, voiceprint in data["voices"]
            ],
            turns=[Turn(**turn) for turn in data["turns"]],
        )


class SpeakerDiariser(Protocol):
    """Finds out who speaks when in a recording of any length, in bounded memory."""

    @property
    def name(self) -> str: ...

    def listen(self, hearing: Hearing, samples: Iterable[FloatSamples]) -> Iterator[int]:
        """Note down what is heard in `samples`, which begin at `hearing.next_sample`.

        Yields the position, in samples, up to which `hearing` now reaches. The caller may stop
        at any of them and go on from it later. At the end `hearing` holds the whole recording.
        """

    def turns(self, hearing: Hearing, *, speakers: int | None) -> list[Turn]:
        """Turns in order of their start, for that many speakers; None counts them."""
