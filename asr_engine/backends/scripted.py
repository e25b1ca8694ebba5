"""Models that read their words out of the samples: for tests, load and demonstrations.

Audio made by `encode_blocks` carries one word number in every 100 ms: four digits of base 16, each
one of sixteen tones, all at once; a pause is zeros. Every tone is a multiple of 100 Hz, so any
10 ms of a block show its number whatever the phase, and PCM16, a change of gain or of the sample
rate leave it readable. A telephone carries the tones of the two lower digits alone: a block without
the others is read as a number below 256. The models keep nothing but what they hear: audio that is
lost, doubled or reordered shows as wrong text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from asr_engine.audio import SAMPLE_RATE, FloatSamples, samples_to_ms
from asr_engine.config import EngineSettings
from asr_engine.errors import (
    NoFreeSlotError,
    StreamError,
    UnknownStreamError,
    UnsupportedModeError,
)
from asr_engine.ports import (
    Candidate,
    Capabilities,
    Chunk,
    DecodeOptions,
    Hypothesis,
    Onward,
    Window,
)
from asr_engine.results import Segment, Word, join_words

BLOCK_SAMPLES = SAMPLE_RATE // 10
"""Samples of one coded word, or of one step of a pause."""
FRAME_SAMPLES = SAMPLE_RATE // 100
FRAMES_PER_BLOCK = BLOCK_SAMPLES // FRAME_SAMPLES
WORD_COUNT = 16**4
"""Word numbers run from 0 to here, 1 h 49 min of speech without a pause."""

_DIGITS, _BASE, _FIRST_TONE = 4, 16, 3
_TELEPHONE_DIGITS = 2
"""Up to 3.4 kHz."""
TELEPHONE_WORD_COUNT = _BASE**_TELEPHONE_DIGITS
_AMPLITUDE = 0.2
_SILENCE_RMS = 0.005
_UNREADABLE, _SILENT = -1, -2
_DOMINANCE = 0.6
"""Share of a digit's energy that its tone must hold: less is a seam between two words, or noise."""

MODES_MS = (80, 160, 560, 1120)
DEFAULT_SLOTS = 20
BATCH_LIMIT = 64


def word_text(number: int) -> str:
    return f"w{number}"


def encode_blocks(blocks: Iterable[int | None], *, is_telephone: bool = False) -> FloatSamples:
    """Audio of `blocks`, 100 ms each: a word number, or None for silence. float32 [n], 16 kHz.

    `is_telephone`: in a telephone's band, for numbers below TELEPHONE_WORD_COUNT.
    """
    time = np.arange(BLOCK_SAMPLES) / SAMPLE_RATE
    parts = [np.zeros(0, dtype=np.float32)]
    for number in blocks:
        samples = np.zeros(BLOCK_SAMPLES)
        if number is not None:
            for digit in range(_TELEPHONE_DIGITS if is_telephone else _DIGITS):
                value = number // _BASE**digit % _BASE
                tone = 100 * (_FIRST_TONE + digit * _BASE + value)
                # The phases keep the digits' peaks apart.
                samples += _AMPLITUDE * np.sin(2 * np.pi * tone * time + digit)
        parts.append(samples.astype(np.float32))
    return np.concatenate(parts)


def script(
    words: int, *, first: int = 0, utterance_words: int = 8, pause_ms: int = 1200
) -> list[int | None]:
    """Blocks of `words` numbered from `first`, with a pause before each utterance and at the end.

    100 ms precision; `pause_ms` must be longer than the engine's silence rule to end an utterance.
    """
    pause: list[int | None] = [None] * (pause_ms // 100)
    blocks: list[int | None] = []
    for number in range(first, first + words):
        if (number - first) % utterance_words == 0:
            blocks += pause
        blocks.append(number % WORD_COUNT)
    return blocks + pause


def script_text(blocks: Iterable[int | None]) -> str:
    """What a correct transcript of `blocks` says."""
    return " ".join(word_text(number) for number in blocks if number is not None)


def read_frames(samples: FloatSamples) -> NDArray[np.int64]:
    """The word number of each whole 10 ms of `samples`, or a negative value where none is heard."""
    count = len(samples) // FRAME_SAMPLES
    frames = samples[: count * FRAME_SAMPLES].reshape(count, FRAME_SAMPLES)
    power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
    coded = power[:, _FIRST_TONE : _FIRST_TONE + _DIGITS * _BASE].reshape(count, _DIGITS, _BASE)
    values = coded.argmax(axis=2)
    numbers: NDArray[np.int64] = (values * _BASE ** np.arange(_DIGITS)).sum(axis=1)
    shares = coded.sum(axis=2)
    is_told = coded.max(axis=2) >= _DOMINANCE * shares
    is_telephone = _is_telephone(shares)
    numbers[is_telephone] %= TELEPHONE_WORD_COUNT
    is_told[:, _TELEPHONE_DIGITS:] |= is_telephone[:, None]
    is_clear = is_told.all(axis=1)
    numbers[~is_clear] = _UNREADABLE
    numbers[~_is_loud(frames)] = _SILENT
    return numbers


def _is_telephone(shares: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Whether the lower digits share all the energy evenly; `shares` is that of each digit."""
    lower, upper = shares[:, :_TELEPHONE_DIGITS], shares[:, _TELEPHONE_DIGITS:]
    total = lower.sum(axis=1)
    alone: NDArray[np.bool_] = (upper.sum(axis=1) <= 0.02 * total) & (
        lower.min(axis=1) >= 0.2 * total
    )
    return alone


def _is_loud(frames: NDArray[np.float32]) -> NDArray[np.bool_]:
    loud: NDArray[np.bool_] = np.sqrt(np.mean(np.square(frames), axis=1)) >= _SILENCE_RMS
    return loud


@dataclass(slots=True)
class WordReader:
    """Words of contiguous audio: a run of equal frames is one word per 100 ms, rounded."""

    start_sample: int
    words: list[Word] = field(default_factory=list)
    _heard: int = 0
    _rest: FloatSamples = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    _number: int = _SILENT
    _run_start: int = 0
    _run_frames: int = 0

    @property
    def end_sample(self) -> int:
        return self.start_sample + self._heard * FRAME_SAMPLES + len(self._rest)

    def hear(self, samples: FloatSamples) -> None:
        audio = np.concatenate([self._rest, samples])
        frames = read_frames(audio)
        self._rest = audio[len(frames) * FRAME_SAMPLES :]
        for number in frames.tolist():
            if number != _UNREADABLE:
                if number != self._number:
                    self.end_run()
                    self._number, self._run_start = number, self._heard
                self._run_frames += 1
            self._heard += 1

    def end_run(self) -> None:
        self.words += self._open_words()
        self._number, self._run_frames = _SILENT, 0

    def hypothesis(self) -> tuple[tuple[Word, ...], int]:
        """All words so far, and how many of them cannot change."""
        return (*self.words, *self._open_words()), len(self.words)

    def _open_words(self) -> list[Word]:
        if self._number < 0:
            return []
        count = (self._run_frames + FRAMES_PER_BLOCK // 2) // FRAMES_PER_BLOCK
        start = self.start_sample + self._run_start * FRAME_SAMPLES
        return [
            Word(
                word_text(self._number),
                samples_to_ms(start + index * BLOCK_SAMPLES),
                samples_to_ms(start + (index + 1) * BLOCK_SAMPLES),
                confidence=1.0,
            )
            for index in range(count)
        ]


@dataclass(slots=True)
class _Slot:
    mode_ms: int
    reader: WordReader | None = None
    must_finish: bool = False


class ScriptedModel:
    """A StreamingModel, continuous or gated. It is strict about the port's contract.

    `mixes_chunks` counts only for a continuous one.
    """

    def __init__(
        self,
        *,
        slots: int = DEFAULT_SLOTS,
        batch_limit: int = BATCH_LIMIT,
        is_gated: bool = False,
        takes_longer_chunks: bool = False,
        mixes_chunks: bool = True,
    ) -> None:
        self._slots: dict[str, _Slot] = {}
        self._capabilities = Capabilities(
            name="scripted",
            languages=(),
            can_detect_language=False,
            modes_ms=MODES_MS,
            default_mode_ms=160,
            chunk_samples={mode: mode * SAMPLE_RATE // 1000 for mode in MODES_MS},
            is_gated=is_gated,
            takes_longer_chunks=takes_longer_chunks,
            mixes_chunks=mixes_chunks and not is_gated,
            finish_context_ms=300,
            batch_limit=batch_limit,
            slots=slots,
        )

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    def open(self, stream: str, *, language: str | None, mode_ms: int) -> None:
        del language  # tones have none
        self._check_mode(mode_ms)
        if stream in self._slots:
            raise StreamError("stream is already open")
        if len(self._slots) >= self._capabilities.slots:
            raise NoFreeSlotError
        self._slots[stream] = _Slot(mode_ms)

    def set_mode(self, stream: str, *, mode_ms: int) -> None:
        self._check_mode(mode_ms)
        self._slot(stream).mode_ms = mode_ms

    def step(self, chunks: Sequence[Chunk]) -> list[Hypothesis]:
        if len({chunk.stream for chunk in chunks}) != len(chunks):
            raise StreamError("a stream appears twice in one step")
        if len(chunks) > self._capabilities.batch_limit:
            raise StreamError("batch too large")
        if len({self._chunk_samples(chunk) for chunk in chunks}) > 1:
            raise StreamError("chunks of two lengths in one step")
        return [self._hear(chunk) for chunk in chunks]

    def finish(self, streams: Sequence[str]) -> list[Hypothesis]:
        finished = []
        for stream in streams:
            slot = self._slot(stream)
            words: tuple[Word, ...] = ()
            if slot.reader is not None:
                slot.reader.end_run()
                words = tuple(slot.reader.words)
            slot.reader, slot.must_finish = None, False
            finished.append(Hypothesis(stream, words, stable_words=len(words)))
        return finished

    def close(self, stream: str) -> None:
        self._slots.pop(stream, None)

    def _hear(self, chunk: Chunk) -> Hypothesis:
        slot = self._slot(chunk.stream)
        self._check_length(slot, chunk)
        if slot.reader is None:
            slot.reader = WordReader(chunk.start_sample)
        if slot.reader.end_sample != chunk.start_sample:
            raise StreamError("chunks of one utterance must be contiguous")
        slot.reader.hear(chunk.samples)
        words, stable = slot.reader.hypothesis()
        return Hypothesis(chunk.stream, words, stable_words=stable)

    def _chunk_samples(self, chunk: Chunk) -> int:
        """The length that `chunk` should have, or have a multiple of."""
        lengths, length = self._capabilities.chunk_samples, len(chunk.samples)
        if self._capabilities.mixes_chunks and length in lengths.values():
            return length
        return lengths[self._slot(chunk.stream).mode_ms]

    def _check_length(self, slot: _Slot, chunk: Chunk) -> None:
        if slot.must_finish:
            raise StreamError("audio after the short last chunk of an utterance")
        length = len(chunk.samples)
        times, rest = divmod(length, self._chunk_samples(chunk))
        is_longer = times > 1 or (times == 1 and rest)
        if is_longer and not self._capabilities.takes_longer_chunks:
            raise StreamError("chunk longer than its mode")
        if length == 0 or (rest and not self._capabilities.is_gated):
            raise StreamError("chunk shorter than its mode")
        slot.must_finish = rest > 0

    def _check_mode(self, mode_ms: int) -> None:
        if mode_ms not in self._capabilities.chunk_samples:
            raise UnsupportedModeError

    def _slot(self, stream: str) -> _Slot:
        try:
            return self._slots[stream]
        except KeyError:
            raise UnknownStreamError from None


class ScriptedDetector:
    """A VoiceActivityDetector and SpeechFinder: what is not silent is speech. Keeps no state."""

    window_samples = 512

    def open(self, stream: str) -> None:
        pass

    def detect(self, windows: Sequence[Chunk]) -> list[float]:
        return [self._probability(window.samples) for window in windows]

    def close(self, stream: str) -> None:
        pass

    def speech_probabilities(self, samples: Iterable[FloatSamples]) -> Iterator[float]:
        rest = np.zeros(0, dtype=np.float32)
        for part in samples:
            rest = np.concatenate([rest, part])
            while len(rest) >= self.window_samples:
                yield self._probability(rest[: self.window_samples])
                rest = rest[self.window_samples :]
        if len(rest):
            yield self._probability(rest)

    def _probability(self, samples: FloatSamples) -> float:
        # Of a window that is only partly speech, the sounding part counts.
        return 0.95 if len(samples) and bool(_is_loud(samples[np.newaxis, :])[0]) else 0.02


class ScriptedBatchModel:
    """A BatchModel over the same code: one candidate for each window that holds words."""

    name = "scripted"
    languages: tuple[str, ...] = ("en",)
    batch_windows = 4
    refine_share = 1.0
    works_beside = False

    def prepare(self, window: Window) -> Window:
        return replace(window, features=self._read(window))

    def encode(self, windows: Sequence[Window], *, room_samples: int = 0) -> object:
        del room_samples
        return [window.features or self._read(window) for window in windows]

    def gather(self, places: Sequence[tuple[object, int]]) -> object:
        return [_words_of(encoded)[index] for encoded, index in places]

    def language_scores(self, windows: Sequence[Window], encoded: object) -> list[dict[str, float]]:
        del encoded
        return [{"en": 1.0} for _ in windows]

    def decode(
        self,
        windows: Sequence[Window],
        encoded: object,
        *,
        languages: Sequence[str],
        options: DecodeOptions,
    ) -> list[list[Candidate]]:
        del windows, languages, options
        return [
            [Candidate(join_words(words), 0.0, 0.0, 1.0, tokens=words)] if words else []
            for words in _words_of(encoded)
        ]

    def decode_onward(
        self,
        windows: Sequence[Window],
        encoded: object,
        onwards: Sequence[Onward],
        *,
        languages: Sequence[str],
        options: DecodeOptions,
    ) -> list[list[Candidate]]:
        del languages, options
        found = []
        for window, words, onward in zip(windows, _words_of(encoded), onwards, strict=True):
            from_ms = samples_to_ms(window.start_sample + onward.sample)
            from_ms = max([from_ms, *(word.end_ms for word in onward.before)])
            more = tuple(word for word in words if word.start_ms >= from_ms)
            whole = (*onward.before, *more)
            found.append(
                [Candidate(join_words(whole), 0.0, 0.0, 1.0, tokens=whole)] if more else []
            )
        return found

    def time_words(
        self,
        windows: Sequence[Window],
        encoded: object,
        candidates: Sequence[Candidate],
        *,
        languages: Sequence[str],
    ) -> list[list[Segment]]:
        del windows, encoded
        return [
            self._segments(candidate, language)
            for candidate, language in zip(candidates, languages, strict=True)
        ]

    @staticmethod
    def _read(window: Window) -> tuple[Word, ...]:
        reader = WordReader(window.start_sample)
        reader.hear(window.samples)
        reader.end_run()
        return tuple(reader.words)

    @staticmethod
    def _segments(candidate: Candidate, language: str) -> list[Segment]:
        if not isinstance(candidate.tokens, tuple):
            raise TypeError("candidates must come from decode()")
        words: tuple[Word, ...] = candidate.tokens
        return [Segment(words[0].start_ms, words[-1].end_ms, candidate.text, words, language)]


def _words_of(encoded: object) -> list[tuple[Word, ...]]:
    if not isinstance(encoded, list):
        raise TypeError("encoded must come from encode()")
    return encoded


def create(settings: EngineSettings) -> ScriptedModel:
    return ScriptedModel(slots=settings.slots or DEFAULT_SLOTS)


def create_detector(settings: EngineSettings) -> ScriptedDetector:
    del settings
    return ScriptedDetector()


def create_batch(settings: EngineSettings) -> ScriptedBatchModel:
    del settings
    return ScriptedBatchModel()


def create_finder(settings: EngineSettings) -> ScriptedDetector:
    del settings
    return ScriptedDetector()
