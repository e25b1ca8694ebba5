"""Silero VAD 6 on ONNX Runtime: speech probabilities for streams and for whole recordings.

Two exports of the same network, equal to the bit: one takes a window of many streams at once, the
other many windows of one recording. A call of either runs on one thread: a window is a tenth of a
millisecond of work.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.backends.onnx_session import open_network
from asr_engine.config import EngineSettings
from asr_engine.errors import StreamError, UnknownStreamError
from asr_engine.ports import Chunk
from asr_engine.store import ModelStore

MODEL: Final = "silero-vad"
STREAM_FILE: Final = "silero_vad_16k_op15.onnx"
SEQUENCE_FILE: Final = "silero_vad_16k_sequence.onnx"

WINDOW_SAMPLES: Final = 512
CONTEXT_SAMPLES: Final = 64
"""The end of the window before, which the network hears again in front of each window."""
STATE_SIZE: Final = 128
MAX_THREADS: Final = 4
MIN_PART_WINDOWS: Final = 48
"""Fewer windows than this are heard sooner by one thread than shared out."""
BLOCK_WINDOWS: Final = 128
"""Windows of a recording per call: 4 s of audio, and a few megabytes."""


def create(settings: EngineSettings) -> SileroDetector:
    """Raises ModelMissingError, ModelUnverifiedError."""
    # Half of the cores at most: the rest of the machine is as busy when there are many streams.
    threads = max(1, min(MAX_THREADS, len(os.sched_getaffinity(0)) // 2))
    path = ModelStore(settings.model_dir).path(MODEL) / STREAM_FILE
    return SileroDetector(path, threads=threads)


def create_finder(settings: EngineSettings) -> SileroFinder:
    """Raises ModelMissingError, ModelUnverifiedError."""
    return SileroFinder(ModelStore(settings.model_dir).path(MODEL) / SEQUENCE_FILE)


@dataclass(slots=True)
class _State:
    """What one stream carries from window to window: recurrent state [2, 128], context [64]."""

    recurrent: NDArray[np.float32] = field(
        default_factory=lambda: np.zeros((2, STATE_SIZE), np.float32)
    )
    context: FloatSamples = field(default_factory=lambda: np.zeros(CONTEXT_SAMPLES, np.float32))


class SileroDetector:
    """A `VoiceActivityDetector`: one small state per stream, all windows of a call in one batch.

    Many windows are shared among `threads`: for hundreds of streams they are a core's work, and the
    model's thread waits for them.
    """

    def __init__(self, path: Path, *, threads: int = 1) -> None:
        self._session = open_network(path)
        self._states: dict[str, _State] = {}
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="silero")

    @property
    def window_samples(self) -> int:
        return WINDOW_SAMPLES

    def open(self, stream: str) -> None:
        """Begin with a fresh state, also for a stream that is open."""
        self._states[stream] = _State()

    def detect(self, windows: Sequence[Chunk]) -> list[float]:
        """Probability of speech in each window; a stream may appear once.

        Raises UnknownStreamError, StreamError for a window of another length.
        """
        if not windows:
            return []
        states = [self._state(window) for window in windows]
        if len({window.stream for window in windows}) != len(windows):
            raise StreamError("a stream appears twice in one call")
        heard = np.stack(
            [
                np.concatenate((state.context, window.samples))
                for state, window in zip(states, windows, strict=True)
            ]
        )
        probabilities, recurrent = self._run(
            heard, np.stack([state.recurrent for state in states], axis=1)
        )
        for row, state in enumerate(states):
            state.recurrent = recurrent[:, row].copy()
            state.context = heard[row, -CONTEXT_SAMPLES:].copy()
        return [float(value) for value in probabilities[:, 0]]

    def close(self, stream: str) -> None:
        self._states.pop(stream, None)

    def _run(
        self, heard: FloatSamples, recurrent: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Probabilities [batch, 1] and states [2, batch, 128] of windows [batch, 576]."""
        parts = max(1, min(self._threads, len(heard) // MIN_PART_WINDOWS))
        if parts == 1:
            return self._run_part((heard, recurrent))
        shared = zip(
            np.array_split(heard, parts), np.array_split(recurrent, parts, axis=1), strict=True
        )
        results = list(self._pool.map(self._run_part, shared))
        return (
            np.concatenate([probabilities for probabilities, _ in results]),
            np.concatenate([state for _, state in results], axis=1),
        )

    def _run_part(
        self, part: tuple[FloatSamples, NDArray[np.float32]]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        heard, recurrent = part
        probabilities, state = self._session.run(
            None,
            {"input": heard, "state": recurrent, "sr": np.array(SAMPLE_RATE, np.int64)},
        )
        return probabilities, state

    def _state(self, window: Chunk) -> _State:
        if window.samples.shape != (WINDOW_SAMPLES,):
            raise StreamError(f"a window has {WINDOW_SAMPLES} samples")
        try:
            return self._states[window.stream]
        except KeyError:
            raise UnknownStreamError(window.stream) from None


class SileroFinder:
    """A `SpeechFinder`: reads a recording of any length in blocks of four seconds."""

    def __init__(self, path: Path) -> None:
        self._session = open_network(path)

    @property
    def window_samples(self) -> int:
        return WINDOW_SAMPLES

    def speech_probabilities(self, samples: Iterable[FloatSamples]) -> Iterator[float]:
        """One probability per window of 512 samples; the last window is padded with zeros."""
        hidden = np.zeros((1, 1, STATE_SIZE), np.float32)
        cell = np.zeros((1, 1, STATE_SIZE), np.float32)
        context = np.zeros(CONTEXT_SAMPLES, np.float32)
        for block in _blocks(samples):
            windows = block.reshape(-1, WINDOW_SAMPLES)
            contexts = np.concatenate((context[None], windows[:-1, -CONTEXT_SAMPLES:]))
            context = windows[-1, -CONTEXT_SAMPLES:]
            probabilities, hidden, cell = self._session.run(
                ["speech_probs", "hn", "cn"],
                {
                    "input": np.concatenate((contexts, windows), axis=1),
                    "h": hidden,
                    "c": cell,
                },
            )
            yield from (float(value) for value in np.ravel(probabilities))


def _blocks(samples: Iterable[FloatSamples]) -> Iterator[FloatSamples]:
    """The same audio in pieces of BLOCK_WINDOWS windows; the last is padded to whole windows."""
    block_samples = BLOCK_WINDOWS * WINDOW_SAMPLES
    held: list[FloatSamples] = []
    held_samples = 0
    for piece in samples:
        held.append(piece)
        held_samples += len(piece)
        if held_samples < block_samples:
            continue
        joined = np.concatenate(held).astype(np.float32, copy=False)
        whole = held_samples - held_samples % block_samples
        for start in range(0, whole, block_samples):
            yield joined[start : start + block_samples]
        held, held_samples = [joined[whole:]], held_samples - whole
    if held_samples:
        joined = np.concatenate(held).astype(np.float32, copy=False)
        yield np.pad(joined, (0, -held_samples % WINDOW_SAMPLES))
