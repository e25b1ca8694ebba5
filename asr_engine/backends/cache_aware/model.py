"""A StreamingModel of any cache-aware Network: slots, continuity, words.

A stream is one unbroken hearing: the network's caches carry it over utterances, so that nothing is
encoded twice and memory never grows. `finish` closes an utterance by its place in the text; the
audio that followed it belongs to the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from asr_engine.audio import samples_to_ms
from asr_engine.backends.cache_aware.network import Network, Token
from asr_engine.backends.cache_aware.words import WordBuilder
from asr_engine.errors import (
    NoFreeSlotError,
    StreamError,
    UnknownStreamError,
    UnsupportedModeError,
)
from asr_engine.ports import Capabilities, Chunk, Hypothesis

DEFAULT_MODE_MS: Final = 160
FINISH_CONTEXT_MS: Final = 300
"""Tokens come after their sound: 0.3 s of silence bring the last word out in every mode."""
FRESH_START_MS: Final = 1000
"""After so long without a token an utterance begins as if nothing had been said before it."""


@dataclass(slots=True)
class _Stream:
    slot: int
    language: str | None
    next_sample: int | None = None
    last_token_sample: int = 0
    words: WordBuilder = field(default_factory=WordBuilder)


class CacheAwareModel:
    """See the module. `name` is what pages and metrics call the model."""

    def __init__(self, network: Network, *, name: str) -> None:
        traits = network.traits
        self._network = network
        self._pieces = traits.pieces
        self._frame_samples = traits.frame_samples
        self._streams: dict[str, _Stream] = {}
        self._free_slots = list(range(traits.slots))
        modes = tuple(sorted(traits.chunk_frames))
        self._capabilities = Capabilities(
            name=name,
            languages=traits.languages,
            can_detect_language=traits.can_detect_language,
            modes_ms=modes,
            default_mode_ms=min(modes, key=lambda mode: abs(mode - DEFAULT_MODE_MS)),
            chunk_samples={
                mode: traits.chunk_frames[mode] * traits.frame_samples for mode in modes
            },
            mixes_chunks=True,
            finish_context_ms=FINISH_CONTEXT_MS,
            batch_limit=traits.batch_limit,
            slots=traits.slots,
        )
        self._chunk_lengths = frozenset(self._capabilities.chunk_samples.values())

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    def open(self, stream: str, *, language: str | None, mode_ms: int) -> None:
        self._check_mode(mode_ms)
        if stream in self._streams:
            raise StreamError("stream is already open")
        if not self._free_slots:
            raise NoFreeSlotError
        slot = self._free_slots[-1]
        self._network.reset(slot, language=language)
        self._streams[stream] = _Stream(self._free_slots.pop(), language)

    def set_mode(self, stream: str, *, mode_ms: int) -> None:
        """Nothing changes but the length of the chunks to come: no state belongs to a mode."""
        self._check_mode(mode_ms)
        self._stream(stream)

    def step(self, chunks: Sequence[Chunk]) -> list[Hypothesis]:
        streams = [self._stream(chunk.stream) for chunk in chunks]
        self._check(chunks)
        for chunk, stream in zip(chunks, streams, strict=True):
            self._follow(chunk, stream)
        emitted = self._network.step(
            [stream.slot for stream in streams], np.stack([chunk.samples for chunk in chunks])
        )
        hypotheses = []
        for chunk, stream, tokens in zip(chunks, streams, emitted, strict=True):
            stream.next_sample = chunk.start_sample + len(chunk.samples)
            self._take(stream, chunk.start_sample, tokens)
            hypotheses.append(
                Hypothesis(
                    chunk.stream,
                    stream.words.words(),
                    stable_words=stream.words.stable_words,
                    language=stream.language,
                )
            )
        return hypotheses

    def finish(self, streams: Sequence[str]) -> list[Hypothesis]:
        """Close utterances; a decoder that was silent for FRESH_START_MS begins anew.

        Without that a prediction network would judge a new sentence by the one before the pause.
        """
        finished, silent = [], []
        for name in streams:
            stream = self._stream(name)
            words = stream.words.words()
            stream.words = WordBuilder()
            finished.append(Hypothesis(name, words, len(words), stream.language))
            if stream.next_sample is not None:
                quiet_samples = stream.next_sample - stream.last_token_sample
                if samples_to_ms(quiet_samples) >= FRESH_START_MS:
                    silent.append(stream.slot)
        if silent:
            self._network.reset_decoder(silent)
        return finished

    def close(self, stream: str) -> None:
        if closed := self._streams.pop(stream, None):
            self._free_slots.append(closed.slot)

    def _follow(self, chunk: Chunk, stream: _Stream) -> None:
        """Where audio is missing before `chunk`, hear it as the beginning of a stream."""
        if stream.next_sample in {None, chunk.start_sample}:
            return
        if stream.words.words():
            raise StreamError("chunks of one utterance must be contiguous")
        self._network.reset(stream.slot, language=stream.language)

    def _take(self, stream: _Stream, start_sample: int, tokens: Sequence[Token]) -> None:
        for token in tokens:
            begin = start_sample + token.frame * self._frame_samples
            stream.last_token_sample = begin + self._frame_samples
            stream.words.add(
                self._pieces[token.id],
                samples_to_ms(begin),
                samples_to_ms(stream.last_token_sample),
                token.confidence,
            )

    def _check(self, chunks: Sequence[Chunk]) -> None:
        if len({chunk.stream for chunk in chunks}) != len(chunks):
            raise StreamError("a stream appears twice in one step")
        if len(chunks) > self._capabilities.batch_limit:
            raise StreamError("batch too large")
        if any(chunk.samples.dtype != np.float32 for chunk in chunks):
            raise StreamError("samples must be float32")
        lengths = {len(chunk.samples) for chunk in chunks}
        if len(lengths) > 1 or not lengths <= self._chunk_lengths:
            raise StreamError("chunks must have the length of one latency mode")

    def _check_mode(self, mode_ms: int) -> None:
        if mode_ms not in self._capabilities.chunk_samples:
            raise UnsupportedModeError

    def _stream(self, name: str) -> _Stream:
        try:
            return self._streams[name]
        except KeyError:
            raise UnknownStreamError from None
