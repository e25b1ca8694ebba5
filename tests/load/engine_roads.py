"""The two roads that `bench_engine` compares, and the audio that both hear.

Ours is an Engine with its endpoints and words; theirs is NeMo's own pipeline run by hand. Both run
on the same weights, in the same process, one chunk of every stream a round.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np
import torch
from numpy.typing import NDArray

from asr_engine.audio import FloatSamples
from asr_engine.backends.cache_aware.model import CacheAwareModel
from asr_engine.backends.cache_aware.network import Network
from asr_engine.events import Final, StreamEvent
from asr_engine.ports import Chunk, VoiceActivityDetector
from asr_engine.streaming import Engine
from tests.fakes.nemo_pipeline import build_pipeline

APART_SAMPLES = 37_123
"""Streams hear the same talk from places so far apart: their pauses come at different times."""
WINDOW_SAMPLES = 512


class SpeechAlways:
    """A detector that costs nothing: all is speech."""

    window_samples = WINDOW_SAMPLES

    def open(self, stream: str) -> None:
        pass

    def detect(self, windows: Sequence[Chunk]) -> list[float]:
        return [1.0] * len(windows)

    def close(self, stream: str) -> None:
        pass


class Talk:
    """One recording, heard by many streams at once, round after round, for ever."""

    def __init__(self, samples: FloatSamples, streams: int, chunk_samples: int) -> None:
        self.chunk_samples = chunk_samples
        self._samples = samples
        starts = np.arange(streams) * APART_SAMPLES
        self._places = starts[:, None] + np.arange(chunk_samples)

    def next(self) -> NDArray[np.float32]:
        """The next chunk of every stream: [streams, chunk_samples]."""
        chunks = self._samples.take(self._places, mode="wrap")
        self._places += self.chunk_samples
        return chunks


class Ours:
    """`streams` of an Engine in one latency mode. Close it before the next on the same network."""

    def __init__(
        self, network: Network, detector: VoiceActivityDetector, *, mode_ms: int, streams: int
    ) -> None:
        model = CacheAwareModel(network, name="bench")
        self.engine = Engine(model, detector, slots=streams)
        self.finals = 0
        self.delays_s: list[float] = []
        self._names = [f"stream-{number}" for number in range(streams)]
        self._heard_samples = 0
        for name in self._names:
            self.engine.open_stream(name, mode_ms=mode_ms)

    def round(self, chunks: NDArray[np.float32]) -> None:
        """Hear the next chunk of every stream and say all that follows from it."""
        for name, chunk in zip(self._names, chunks, strict=True):
            self.engine.accept_audio(name, self._heard_samples, chunk)
        self._heard_samples += chunks.shape[1]
        while self.engine.step():
            # At once, as a server publishes them: a final may not wait for other streams' steps.
            self._count(self.engine.take_events())
        self._count(self.engine.take_events())

    def _count(self, events: Sequence[StreamEvent]) -> None:
        now = time.monotonic()
        delays = [now - event.decided_at_s for event in events if isinstance(event, Final)]
        self.finals += len(delays)
        self.delays_s += delays

    def close(self) -> None:
        for name in self._names:
            self.engine.close_stream(name)


class Theirs:
    """`streams` of NeMo's pipeline in one latency mode, over the weights of `model`."""

    def __init__(
        self, model: Any, *, right_frames: int, streams: int, device: str, has_graphs: bool = False
    ) -> None:
        from nemo.collections.asr.inference.model_wrappers.asr_inference_wrapper import (
            ASRInferenceWrapper,
        )
        from nemo.collections.asr.inference.streaming.framing.request import Frame
        from nemo.collections.asr.inference.streaming.framing.request_options import (
            ASRRequestOptions,
        )

        self._frame, self._options = Frame, ASRRequestOptions
        same_weights = staticmethod(lambda _name, _device: _twin(model))
        left_frames = model.encoder.att_context_size_all[0][0]
        # The pipeline knows only files; restoring one again would cost minutes at these sizes.
        with mock.patch.object(ASRInferenceWrapper, "load_model", same_weights):
            self._pipeline = build_pipeline(
                "in-memory.nemo",  # type: ignore[arg-type]  # a name, and never a file
                decoder="rnnt",
                att_context_size=(left_frames, right_frames),
                slots=streams,
                device=device,
            )
        if has_graphs:
            wrapper = self._pipeline.asr_model
            wrapper.decoding_cfg.greedy.use_cuda_graph_decoder = True
            wrapper.set_decoding_strategy("rnnt")
        self._is_first = True

    def round(self, chunks: NDArray[np.float32]) -> None:
        self._pipeline.transcribe_step(
            [
                self._frame(
                    samples=torch.from_numpy(chunk),
                    stream_id=number,
                    is_first=self._is_first,
                    options=self._options() if self._is_first else None,
                )
                for number, chunk in enumerate(chunks)
            ]
        )
        self._is_first = False


def _twin(model: Any) -> Any:
    """A model over the same weights with an encoder whose settings are its own."""
    twin = copy.copy(model)
    modules = dict(model._modules)
    modules["encoder"] = copy.copy(model.encoder)
    twin.__dict__["_modules"] = modules
    return twin
