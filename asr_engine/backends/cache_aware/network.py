"""What a cache-aware network does for the streams in its slots. Knows no utterance and no text.

`model.py` makes a StreamingModel of any Network; `nemo.py` and `onnx.py` implement it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from asr_engine.audio import FloatSamples


@dataclass(frozen=True, slots=True)
class Token:
    """A token that a step emitted. `frame` counts the encoder frames of the step from 0;
    `confidence` is 0..1 or None where the decoder has none."""

    id: int
    frame: int
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class NetworkTraits:
    """What a network is made of.

    `pieces` are the SentencePiece pieces by token id, without the blank. `chunk_frames` gives, for
    each latency mode in ms, the encoder frames of one step; one frame is `frame_samples` samples at
    16 kHz. `languages` are ISO 639-1 codes, empty where the network does not say.
    """

    pieces: tuple[str, ...]
    chunk_frames: Mapping[int, int]
    frame_samples: int
    languages: tuple[str, ...]
    can_detect_language: bool
    slots: int
    batch_limit: int


class Network(Protocol):
    """An encoder with caches and a greedy decoder with its state, for a fixed pool of slots.

    All state of a stream is independent of the latency mode, so that successive steps of one slot
    may be of different lengths: a change of mode costs nothing.
    """

    @property
    def traits(self) -> NetworkTraits: ...

    def reset(self, slot: int, *, language: str | None) -> None:
        """Forget everything that `slot` heard; the next step begins a stream in `language`.

        Raises UnsupportedLanguageError.
        """

    def reset_decoder(self, slots: Sequence[int]) -> None:
        """Forget what was said in `slots`, but not what was heard."""

    def step(self, slots: Sequence[int], audio: FloatSamples) -> list[list[Token]]:
        """Hear the next chunk of each slot and return the tokens that each emitted.

        `audio` is float32 [len(slots), n] with n the samples of one latency mode's chunk; slots
        are distinct. The state of all slots changes at the end or, after an exception, not at all.
        """
