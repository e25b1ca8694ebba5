"""The embedded diariser: who speaks in each window, whose voices are alike. CPU, no torch.

Windows of ten seconds every five: a network hears which of up to three voices speak when, and
another makes a voiceprint of each. Only the middle of a window is kept, where the network has
heard both sides. About 30 ms of one core for a second of audio.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from asr_engine.audio import SAMPLE_RATE, FloatSamples, samples_to_ms
from asr_engine.backends.onnx_session import open_network
from asr_engine.backends.speakers import features, segmentation
from asr_engine.backends.speakers.checkpoint import read_tensors
from asr_engine.backends.speakers.segmentation import (
    CLASSES,
    FRAME_OFFSET_SAMPLES,
    FRAME_SAMPLES,
    VOICES,
    WINDOW_SAMPLES,
)
from asr_engine.backends.speakers.voiceprint import voiceprint_network
from asr_engine.config import EngineSettings
from asr_engine.diarisation.clustering import speakers_of
from asr_engine.diarisation.port import Hearing, Turn, Voice
from asr_engine.diarisation.turns import turns_of
from asr_engine.store import ModelStore

MODEL: Final = "speakers"
SEGMENTATION_FILE: Final = "segmentation.pt"
VOICEPRINT_FILE: Final = "voiceprint.pt"

STEP_SAMPLES: Final = 5 * SAMPLE_RATE
EDGE_SAMPLES: Final = (WINDOW_SAMPLES - STEP_SAMPLES) // 2
"""What of a window is left to its neighbours, on either side."""
SILENCE_BIAS: Final = 1.0
"""Taken off the score of "nobody speaks": quiet voices beside loud ones are missed otherwise."""
MIN_VOICE_SAMPLES: Final = SAMPLE_RATE // 10
MIN_ALONE_SAMPLES: Final = 2 * SAMPLE_RATE // 5
"""A voice that speaks alone for less is described with what it says while others speak."""
MAX_PRINT_SAMPLES: Final = 5 * SAMPLE_RATE
MIN_PRINT_SAMPLES: Final = SAMPLE_RATE // 4


def create(settings: EngineSettings) -> EmbeddedDiariser:
    """Raises ModelMissingError, ModelUnverifiedError."""
    return EmbeddedDiariser(ModelStore(settings.model_dir).path(MODEL))


class EmbeddedDiariser:
    """A `SpeakerDiariser` of any number of speakers, at most three of them in ten seconds."""

    def __init__(self, folder: Path) -> None:
        self._segmentation = open_network(
            segmentation.segmentation_network(read_tensors(folder / SEGMENTATION_FILE))
        )
        self._voiceprint = open_network(voiceprint_network(read_tensors(folder / VOICEPRINT_FILE)))

    @property
    def name(self) -> str:
        return "CAM++"

    def listen(self, hearing: Hearing, samples: Iterable[FloatSamples]) -> Iterator[int]:
        """As the port says; holds a window of audio."""
        start = hearing.next_sample
        held = np.zeros(0, np.float32)
        # The share of a window begins where that of the one before ended.
        share_start = start + EDGE_SAMPLES if start else 0
        for block in samples:
            held = np.concatenate((held, block))
            while len(held) > WINDOW_SAMPLES:
                share_end = start + WINDOW_SAMPLES - EDGE_SAMPLES
                self._note(hearing, held[:WINDOW_SAMPLES], start, (share_start, share_end))
                share_start = share_end
                start += STEP_SAMPLES
                held = held[STEP_SAMPLES:]
                hearing.next_sample = start
                yield share_end
        end = start + len(held)
        if end > share_start:
            self._note(hearing, held, start, (share_start, end))
        yield end

    def turns(self, hearing: Hearing, *, speakers: int | None) -> list[Turn]:
        return turns_of(hearing.voices, speakers_of(hearing.voices, speakers=speakers))

    def _note(
        self, hearing: Hearing, samples: FloatSamples, start: int, share: tuple[int, int]
    ) -> None:
        window = np.pad(samples, (0, WINDOW_SAMPLES - len(samples)))
        speaking = self._speaking(window)
        is_alone = speaking.sum(axis=1) == 1
        for voice in range(VOICES):
            spoken = speaking[:, voice]
            if spoken.sum() * FRAME_SAMPLES < MIN_VOICE_SAMPLES:
                continue
            alone = spoken & is_alone
            alone_samples = int(alone.sum()) * FRAME_SAMPLES
            described = alone if alone_samples >= MIN_ALONE_SAMPLES else spoken
            hearing.voices.append(
                Voice(
                    window=hearing.windows,
                    # None where only the edges hold it: its voiceprint counts all the same.
                    spans=_spans(spoken, start, share),
                    alone_ms=samples_to_ms(alone_samples),
                    voiceprint=self._print(_pick(window, described)),
                )
            )
        hearing.windows += 1

    def _speaking(self, window: FloatSamples) -> NDArray[np.bool_]:
        """Which voices speak: bool [frames, VOICES]."""
        scores = self._segmentation.run(None, {"input": window[None, None]})[0][0]
        scores[:, 0] -= SILENCE_BIAS
        speaking: NDArray[np.bool_] = _members()[scores.argmax(axis=1)]
        return speaking

    def _print(self, samples: FloatSamples) -> NDArray[np.float32]:
        """The voiceprint of speech, float32 [192] of length 1."""
        if len(samples) < MIN_PRINT_SAMPLES:
            samples = np.resize(samples, MIN_PRINT_SAMPLES)
        heard = features.log_mel(samples[:MAX_PRINT_SAMPLES])
        heard -= heard.mean(axis=0)
        voiceprint: NDArray[np.float32] = self._voiceprint.run(None, {"input": heard[None]})[0][0]
        return voiceprint / np.float32(max(float(np.linalg.norm(voiceprint)), 1e-9))


@functools.cache
def _members() -> NDArray[np.bool_]:
    """Voices of each class: bool [classes, VOICES]."""
    return np.array([[voice in members for voice in range(VOICES)] for members in CLASSES])


def _spans(
    spoken: NDArray[np.bool_], start: int, share: tuple[int, int]
) -> tuple[tuple[int, int], ...]:
    """Runs of frames as (start_ms, end_ms) in the recording, inside the window's share."""
    edges = np.flatnonzero(np.diff(spoken.astype(np.int8), prepend=0, append=0))
    samples = start + edges * FRAME_SAMPLES + FRAME_OFFSET_SAMPLES - FRAME_SAMPLES // 2
    clipped = np.clip(samples, *share).reshape(-1, 2)
    spans = ((samples_to_ms(int(begin)), samples_to_ms(int(end))) for begin, end in clipped)
    return tuple((begin, end) for begin, end in spans if end > begin)


def _pick(window: FloatSamples, frames: NDArray[np.bool_]) -> FloatSamples:
    """The samples in the middle of the chosen frames, joined."""
    begin = FRAME_OFFSET_SAMPLES - FRAME_SAMPLES // 2
    cut = window[begin : begin + len(frames) * FRAME_SAMPLES]
    return cut.reshape(-1, FRAME_SAMPLES)[frames].ravel()
