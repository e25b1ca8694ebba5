"""Whisper on CTranslate2 as a BatchModel: encode once, decode batched, words timed by alignment.

The decoding is that of faster-whisper's BatchedInferencePipeline; what it leaves out is added:
guards against text where nobody spoke and against loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from asr_engine.audio import SAMPLE_RATE, samples_to_ms
from asr_engine.backends.whisper_models import load_whisper
from asr_engine.config import EngineSettings
from asr_engine.errors import UnsupportedLanguageError
from asr_engine.ports import DecodeOptions, Window
from asr_engine.results import LanguageGuess, Segment, Word, join_words

CPU_BATCH: Final = 1
"""Measured on two threads, 2 is a fifth faster and 4 a third; but between two batches alone does a
job look whether live streams should go first, or whether somebody cancelled it."""
GPU_BATCH: Final = 16

MAX_COMPRESSION: Final = 2.4
"""Text that packs better than this repeats itself (the threshold of Whisper's authors)."""
NO_REPEAT_WORDS: Final = 3
"""Tokens of a run that may not come twice when a looping window is decoded again."""
NO_SPEECH: Final = 0.6
LOW_LOG_PROBABILITY: Final = -1.0
"""Both must be passed for a window to count as silent (the rule of Whisper's authors)."""
MIN_CONFIDENCE: Final = -1.5
"""Mean log-probability below which text is noise whatever the no-speech token says."""

PREPENDED: Final = "\"'“¿([{-"
APPENDED: Final = "\"'.。,，!！?？:：”)]}、"


def create(settings: EngineSettings) -> WhisperBatchModel:
    """Raises ModelMissingError, ModelUnverifiedError."""
    return WhisperBatchModel(load_whisper(settings, settings.batch_model), settings.batch_model)


@dataclass(frozen=True, slots=True)
class _Encoded:
    """Encoder output [n, 1500, state] of n windows, on the model's device."""

    output: Any
    windows: int


@dataclass(frozen=True, slots=True)
class _Decoded:
    """The best hypothesis of one window."""

    tokens: list[int]
    text: str
    mean_log_probability: float
    no_speech_probability: float
    compression_ratio: float

    @property
    def is_loop(self) -> bool:
        return self.compression_ratio > MAX_COMPRESSION

    @property
    def is_silence(self) -> bool:
        return not self.text or self.mean_log_probability < (
            LOW_LOG_PROBABILITY if self.no_speech_probability > NO_SPEECH else MIN_CONFIDENCE
        )


class WhisperBatchModel:
    """One Whisper model; used by one thread."""

    def __init__(self, model: Any, name: str) -> None:
        self._whisper = model
        self._name = name
        self._tokenizers: dict[str, Any] = {}

    @property
    def name(self) -> str:
        return self._name

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(self._whisper.supported_languages)

    @property
    def batch_windows(self) -> int:
        return CPU_BATCH if self._whisper.model.device == "cpu" else GPU_BATCH

    def encode(self, windows: Sequence[Window]) -> _Encoded:
        from faster_whisper.audio import pad_or_trim

        extract = self._whisper.feature_extractor
        features = np.stack([pad_or_trim(extract(window.samples)[:, :-1]) for window in windows])
        return _Encoded(self._whisper.encode(features), len(windows))

    def detect_language(self, windows: Sequence[Window], encoded: object) -> LanguageGuess:
        """The language of most speech: probabilities weighted by the length of the windows."""
        if not self._whisper.model.is_multilingual:
            return LanguageGuess("en", 1.0)
        scores: dict[str, float] = {}
        total = sum(len(window.samples) for window in windows)
        guesses = self._whisper.model.detect_language(_output(encoded))
        for window, guess in zip(windows, guesses, strict=True):
            for token, probability in guess:
                language = token.strip("<|>")
                share = probability * len(window.samples) / total
                scores[language] = scores.get(language, 0.0) + share
        best = max(scores, key=lambda language: scores[language])
        return LanguageGuess(best, min(1.0, scores[best]))

    def decode(
        self,
        windows: Sequence[Window],
        encoded: object,
        *,
        language: str,
        options: DecodeOptions,
    ) -> list[list[Segment]]:
        """At most one segment for each window. Raises UnsupportedLanguageError."""
        output = _output(encoded)
        tokenizer = self._tokenizer(language)
        decoded = self._generate(output, len(windows), tokenizer, options)
        self._mend_loops(output, decoded, tokenizer)
        texts = [[] if one.is_silence else one.tokens for one in decoded]
        if not any(texts):
            return [[] for _ in windows]
        aligned = self._align(output, texts, windows, tokenizer)
        return [
            self._segments(window, one, words, language)
            for window, one, words in zip(windows, decoded, aligned, strict=True)
        ]

    def _tokenizer(self, language: str) -> Any:
        from faster_whisper.tokenizer import Tokenizer

        if language not in self._whisper.supported_languages:
            raise UnsupportedLanguageError(language)
        if language not in self._tokenizers:
            self._tokenizers[language] = Tokenizer(
                self._whisper.hf_tokenizer,
                self._whisper.model.is_multilingual,
                task="transcribe",
                language=language,
            )
        return self._tokenizers[language]

    def _generate(
        self, output: Any, count: int, tokenizer: Any, options: DecodeOptions, **extra: Any
    ) -> list[_Decoded]:
        from faster_whisper.transcribe import get_compression_ratio, get_suppressed_tokens

        prompt = self._whisper.get_prompt(tokenizer, [], without_timestamps=True)
        results = self._whisper.model.generate(
            output,
            [prompt] * count,
            beam_size=options.beam_size,
            max_length=self._whisper.max_length,
            suppress_blank=True,
            suppress_tokens=get_suppressed_tokens(tokenizer, [-1]),
            return_scores=True,
            return_no_speech_prob=True,
            **extra,
        )
        decoded = []
        for result in results:
            tokens = [token for token in result.sequences_ids[0] if token < tokenizer.eot]
            text = tokenizer.decode(tokens).strip()
            length = len(result.sequences_ids[0])
            decoded.append(
                _Decoded(
                    tokens,
                    text,
                    # The score is the mean over the tokens; the end token counts in it as well.
                    result.scores[0] * length / (length + 1),
                    result.no_speech_prob,
                    get_compression_ratio(text) if text else 0.0,
                )
            )
        return decoded

    def _mend_loops(self, output: Any, decoded: list[_Decoded], tokenizer: Any) -> None:
        """Decode windows whose text repeats itself again, by beam search without repetition.

        A text that still loops is dropped: it is noise.
        """
        if not any(one.is_loop for one in decoded):
            return
        again = self._generate(
            output,
            len(decoded),
            tokenizer,
            DecodeOptions(beam_size=5),
            no_repeat_ngram_size=NO_REPEAT_WORDS,
        )
        for index, one in enumerate(decoded):
            if one.is_loop:
                mended = again[index]
                decoded[index] = replace(mended, text="") if mended.is_loop else mended

    def _align(
        self, output: Any, texts: list[list[int]], windows: Sequence[Window], tokenizer: Any
    ) -> list[list[dict[str, Any]]]:
        from faster_whisper.transcribe import merge_punctuations

        frames = [-(-len(window.samples) * 100 // SAMPLE_RATE) for window in windows]
        aligned: list[list[dict[str, Any]]] = self._whisper.find_alignment(
            tokenizer, texts, output, frames
        )
        for words in aligned:
            merge_punctuations(words, PREPENDED, APPENDED)
        return aligned

    def _segments(
        self, window: Window, decoded: _Decoded, aligned: list[dict[str, Any]], language: str
    ) -> list[Segment]:
        start_ms = samples_to_ms(window.start_sample)
        words = tuple(
            Word(
                text=item["word"].strip(),
                start_ms=start_ms + round(float(item["start"]) * 1000),
                end_ms=start_ms + round(float(item["end"]) * 1000),
                confidence=round(float(item["probability"]), 3),
                has_space_before=item["word"].startswith(" "),
            )
            for item in aligned
            if item["word"].strip()
        )
        if decoded.is_silence or not words:
            return []
        return [
            Segment(
                start_ms=words[0].start_ms,
                end_ms=words[-1].end_ms,
                text=join_words(words),
                words=words,
                language=language,
                mean_log_probability=round(decoded.mean_log_probability, 3),
                no_speech_probability=round(decoded.no_speech_probability, 3),
                compression_ratio=round(decoded.compression_ratio, 2),
            )
        ]


def _output(encoded: object) -> Any:
    if not isinstance(encoded, _Encoded):
        raise TypeError("encoded must come from encode()")
    return encoded.output
