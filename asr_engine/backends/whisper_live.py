"""Live Whisper: the buffer of an open utterance is decoded anew with every step.

Gated: the engine feeds only the audio of open utterances. Two models serve all languages, one for
English and a multilingual one; each is loaded when a stream first needs it. Streams of one step are
decoded side by side, one core each: on a CPU that is faster than one decoding on all cores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np

from asr_engine.audio import SAMPLE_RATE, FloatSamples, ms_to_samples, samples_to_ms
from asr_engine.backends.agreement import SENTENCE_ENDS, UNSPACED_LANGUAGES, Agreement, Unit
from asr_engine.backends.whisper_decoder import Encoded, WhisperDecoder
from asr_engine.backends.whisper_models import load_whisper, placement, usable_cores
from asr_engine.config import EngineSettings
from asr_engine.errors import (
    ModelMissingError,
    NoFreeSlotError,
    UnknownStreamError,
    UnsupportedLanguageError,
    UnsupportedModeError,
)
from asr_engine.ports import Capabilities, Chunk, Hypothesis
from asr_engine.results import LanguageGuess
from asr_engine.store import ModelState, ModelStore

ENGLISH: Final = "en"
MODES_MS: Final = (400, 560, 800, 1120)
DEFAULT_MODE_MS: Final = 560
SLOTS_PER_CORE: Final = 2

MIN_DECODE_MS: Final = 500
"""Less than this, pre-roll included, is no word yet."""
HORIZON_MS: Final = 200
"""A unit that ends so close to the end of the buffer may be half a word."""
MAX_BUFFER_S: Final = 12
KEPT_BUFFER_S: Final = 5
"""When the buffer is longer than the one, what is agreed leaves it until the other is left."""
CERTAIN_LANGUAGE: Final = 0.8
DETECTION_MS: Final = 1500
MAX_DETECTION_MS: Final = 5000
"""An utterance keeps its detected language from DETECTION_MS of speech on if it is certain; from
the other on it keeps that of the utterance before, or the best guess."""
FINISH_CONTEXT_MS: Final = 200
"""Of the silence after the last word; without any, Whisper tends to drop it."""


@dataclass(slots=True)
class _Utterance:
    """The open utterance of a stream: its audio that is still decoded, and its text."""

    start_sample: int
    samples: FloatSamples
    decoded_sample: int
    language: str | None
    """Chosen or settled; None while it is being detected."""
    guess: str | None = None
    left: int = 0
    """Leading agreed units whose audio has left the buffer."""
    agreement: Agreement = field(default_factory=Agreement)

    @property
    def end_sample(self) -> int:
        return self.start_sample + len(self.samples)

    @property
    def left_units(self) -> list[Unit]:
        return self.agreement.agreed[: self.left]

    @property
    def held_units(self) -> list[Unit]:
        return self.agreement.agreed[self.left :]

    def append(self, chunk: Chunk) -> None:
        self.samples = np.concatenate((self.samples, chunk.samples))

    def shorten(self) -> None:
        """Let agreed text and its audio leave a buffer that has grown long.

        The cut is where a unit ends and the next begins latest: in a pause, if there is one.
        """
        if len(self.samples) <= MAX_BUFFER_S * SAMPLE_RATE:
            return
        latest_ms = samples_to_ms(self.end_sample - KEPT_BUFFER_S * SAMPLE_RATE)
        held = self.held_units
        cuts = [
            (after.word.start_ms - before.word.end_ms, _is_sentence_end(before), index)
            for index, (before, after) in enumerate(pairwise(held), 1)
            if latest_ms - 4000 <= before.word.end_ms <= latest_ms
        ]
        if not cuts:
            return
        _, _, count = max(cuts, key=lambda cut: (cut[1], cut[0], cut[2]))
        before, after = held[count - 1].word, held[count].word
        cut_sample = ms_to_samples((before.end_ms + after.start_ms) // 2)
        self.samples = self.samples[cut_sample - self.start_sample :].copy()
        self.start_sample = cut_sample
        self.left += count


def _is_sentence_end(unit: Unit) -> bool:
    return unit.word.text[-1] in SENTENCE_ENDS


@dataclass(slots=True)
class _Stream:
    mode_ms: int
    chosen: str | None
    """None: each utterance is in the language that is heard in it, since speakers switch."""
    heard: str | None = None
    """Language of the newest utterance in which one was certain."""
    utterance: _Utterance | None = None


class LiveWhisper:
    """A `StreamingModel`. `english` and `multilingual` make decoders and are called at most once.

    `workers` streams are decoded at once.
    """

    def __init__(
        self,
        *,
        english: Callable[[], WhisperDecoder] | None,
        multilingual: Callable[[], WhisperDecoder] | None,
        languages: tuple[str, ...],
        slots: int,
        workers: int,
    ) -> None:
        self._makers = {ENGLISH: english, None: multilingual}
        self._decoders: dict[str | None, WhisperDecoder] = {}
        self._streams: dict[str, _Stream] = {}
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="whisper")
        self._languages = languages
        self._capabilities = Capabilities(
            name="whisper",
            languages=self._languages,
            can_detect_language=multilingual is not None,
            modes_ms=MODES_MS,
            default_mode_ms=DEFAULT_MODE_MS,
            chunk_samples={mode_ms: ms_to_samples(mode_ms) for mode_ms in MODES_MS},
            is_gated=True,
            takes_longer_chunks=True,
            finish_context_ms=FINISH_CONTEXT_MS,
            batch_limit=workers,
            slots=slots,
        )

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    def open(self, stream: str, *, language: str | None, mode_ms: int) -> None:
        """Take a slot, and load the model if this is the first stream that needs it."""
        if len(self._streams) >= self._capabilities.slots and stream not in self._streams:
            raise NoFreeSlotError
        if language is None and not self._capabilities.can_detect_language:
            language = ENGLISH
        if language is not None and language not in self._languages:
            raise UnsupportedLanguageError
        self._check_mode(mode_ms)
        self._decoder(language)
        self._streams[stream] = _Stream(mode_ms, language)

    def set_mode(self, stream: str, *, mode_ms: int) -> None:
        self._check_mode(mode_ms)
        self._stream(stream).mode_ms = mode_ms

    def step(self, chunks: Sequence[Chunk]) -> list[Hypothesis]:
        """Decode the buffers of these streams side by side.

        What is no multiple of the mode's chunk ends its utterance: `finish` will decode it.
        """
        due = []
        for chunk in chunks:
            stream = self._stream(chunk.stream)
            if stream.utterance is None:
                stream.utterance = _Utterance(
                    chunk.start_sample, chunk.samples, chunk.start_sample, stream.chosen
                )
            else:
                stream.utterance.append(chunk)
            if len(chunk.samples) % self._capabilities.chunk_samples[stream.mode_ms] == 0:
                due.append(stream)
        for _ in self._pool.map(self._decode_open, due):
            pass
        return [self._hypothesis(chunk.stream) for chunk in chunks]

    def finish(self, streams: Sequence[str]) -> list[Hypothesis]:
        for _ in self._pool.map(self._decode_last, [self._stream(name) for name in streams]):
            pass
        hypotheses = [self._hypothesis(name) for name in streams]
        for name in streams:
            self._stream(name).utterance = None
        return hypotheses

    def close(self, stream: str) -> None:
        self._streams.pop(stream, None)

    def _check_mode(self, mode_ms: int) -> None:
        if mode_ms not in MODES_MS:
            raise UnsupportedModeError

    def _stream(self, name: str) -> _Stream:
        try:
            return self._streams[name]
        except KeyError:
            raise UnknownStreamError(name) from None

    def _decoder(self, language: str | None) -> WhisperDecoder:
        key = ENGLISH if language == ENGLISH and self._makers[ENGLISH] else None
        if key not in self._decoders:
            make = self._makers[key]
            if make is None:
                raise UnsupportedLanguageError
            self._decoders[key] = make()
        return self._decoders[key]

    def _hypothesis(self, name: str) -> Hypothesis:
        stream = self._stream(name)
        utterance = stream.utterance
        if utterance is None:
            return Hypothesis(name, (), 0, stream.chosen or stream.heard)
        agreement = utterance.agreement
        language = utterance.language or utterance.guess
        return Hypothesis(name, agreement.words, len(agreement.agreed), language)

    def _decode_open(self, stream: _Stream) -> None:
        """Runs in the pool; touches this stream only."""
        utterance = stream.utterance
        if utterance is None or len(utterance.samples) < ms_to_samples(MIN_DECODE_MS):
            return
        encoded, continuation = self._decode(stream, utterance)
        utterance.decoded_sample = utterance.end_sample
        if utterance.language is None:
            utterance.agreement.open = continuation
            return
        utterance.agreement.update(
            continuation,
            is_spaced=utterance.language not in UNSPACED_LANGUAGES,
            horizon_ms=samples_to_ms(encoded.end_sample) - HORIZON_MS,
        )
        utterance.shorten()

    def _decode_last(self, stream: _Stream) -> None:
        """Runs in the pool; touches this stream only."""
        utterance = stream.utterance
        if utterance is None:
            return
        if utterance.decoded_sample < utterance.end_sample:
            _, utterance.agreement.open = self._decode(stream, utterance)
        utterance.agreement.settle()

    def _decode(self, stream: _Stream, utterance: _Utterance) -> tuple[Encoded, list[Unit]]:
        decoder = self._decoder(utterance.language)
        encoded = decoder.encode(utterance.samples, utterance.start_sample)
        if utterance.language is None:
            self._detect(stream, utterance, decoder.detect_language(encoded))
            if utterance.language == ENGLISH and self._makers[ENGLISH]:
                return self._decode(stream, utterance)
        continuation = decoder.continuation(
            encoded,
            language=utterance.language or utterance.guess or ENGLISH,
            left=[token for unit in utterance.left_units for token in unit.tokens],
            agreed=utterance.held_units,
        )
        return encoded, continuation

    def _detect(self, stream: _Stream, utterance: _Utterance, guess: LanguageGuess) -> None:
        """Guess the utterance's language; settle it once it is certain or enough was heard.

        An uncertain guess does not change the language of the utterance before.
        """
        heard_ms = samples_to_ms(len(utterance.samples))
        is_certain = guess.probability >= CERTAIN_LANGUAGE
        utterance.guess = guess.language if is_certain else stream.heard or guess.language
        if heard_ms >= (DETECTION_MS if is_certain else MAX_DETECTION_MS):
            utterance.language = stream.heard = utterance.guess


def create(settings: EngineSettings) -> LiveWhisper:
    """Raises ModelMissingError if neither model is installed, ModelUnverifiedError."""
    store = ModelStore(settings.model_dir)
    states = {status.entry.name: status.state for status in store.status()}
    cores = usable_cores()
    is_on_gpu = placement(settings).device == "cuda"
    workers = 1 if is_on_gpu else max(1, cores // (settings.threads or 1))

    def maker(name: str) -> Callable[[], WhisperDecoder] | None:
        if states.get(name) is ModelState.MISSING:
            return None
        return lambda: WhisperDecoder(
            load_whisper(settings, name, threads=settings.threads or 1, workers=workers)
        )

    english, multilingual = maker(settings.live_model_en), maker(settings.live_model)
    if english is None and multilingual is None:
        raise ModelMissingError(f"neither {settings.live_model_en} nor {settings.live_model}")
    return LiveWhisper(
        english=english,
        multilingual=multilingual,
        languages=_languages() if multilingual else (ENGLISH,),
        slots=settings.slots or SLOTS_PER_CORE * cores,
        workers=workers,
    )


def _languages() -> tuple[str, ...]:
    from faster_whisper.tokenizer import _LANGUAGE_CODES

    # Cantonese came with large-v3; the smaller models have no token for it.
    return tuple(code for code in _LANGUAGE_CODES if code != "yue")
