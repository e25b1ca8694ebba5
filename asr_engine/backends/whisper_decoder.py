"""One Whisper model on CTranslate2, asked for the text of a short buffer that begins with a prefix.

Stateless and safe for several threads: CTranslate2 queues calls to its replicas. Uses
`faster_whisper.WhisperModel` for features, tokens and suppression, and its CTranslate2 model
directly: the library's own loop pads every buffer to 30 s, which is most of the cost.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from asr_engine.audio import SAMPLE_RATE, FloatSamples, samples_to_ms
from asr_engine.backends.agreement import (
    UNSPACED_LANGUAGES,
    Unit,
    in_order,
    spell,
    without_loops,
)
from asr_engine.results import LanguageGuess, Word

FRAME_SAMPLES: Final = 160
MAX_FRAMES: Final = 3000
MIN_FRAMES: Final = 1000
PADDING_FRAMES: Final = 200
"""Whisper was trained on 30 s. It stands a shorter window, but repeats itself with less than 10 s
in all, or with less than 2 s of silence at the end."""
PROMPT_TOKENS: Final = 64
"""Of the text that has left the buffer."""
TOKENS_PER_SECOND: Final = 14
"""Beyond the fastest speech in the wordiest script; a cap against loops."""
MAX_COMPRESSION_RATIO: Final = 2.4
NO_SPEECH: Final = 0.5
MIN_LOG_PROBABILITY: Final = -0.5
"""Text below the one, where no speech is likelier than the other, was made up. Neither alone says
so: hard speech, and speech in another language, is unlikely text but surely speech."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Encoder output of a buffer of `samples` samples that begins at `start_sample`."""

    output: Any
    frames: int
    start_sample: int
    end_sample: int


class WhisperDecoder:
    """`model` is a `faster_whisper.WhisperModel`."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._tokenizer = cache(self._make_tokenizer)
        self._suppressed = cache(self._find_suppressed)

    @property
    def is_multilingual(self) -> bool:
        return bool(self._model.model.is_multilingual)

    def encode(self, samples: FloatSamples, start_sample: int) -> Encoded:
        """Encode up to 28 s of audio in the shortest window that Whisper stands."""
        features: NDArray[np.float32] = self._model.feature_extractor(samples)
        frames = min(len(samples) // FRAME_SAMPLES + 1, features.shape[1], MAX_FRAMES)
        window = min(MAX_FRAMES, max(MIN_FRAMES, (frames + PADDING_FRAMES + 1) // 2 * 2))
        padded = np.full((features.shape[0], window), features.min(), np.float32)
        padded[:, :frames] = features[:, :frames]
        return Encoded(
            self._model.encode(padded), frames, start_sample, start_sample + len(samples)
        )

    def detect_language(self, encoded: Encoded) -> LanguageGuess:
        """Best guess; the buffer must hold speech and the model be multilingual."""
        token, probability = self._model.model.detect_language(encoded.output)[0][0]
        return LanguageGuess(token[2:-2], float(probability))

    def continuation(
        self,
        encoded: Encoded,
        *,
        language: str,
        left: Sequence[int],
        agreed: Sequence[Unit],
    ) -> list[Unit]:
        """What follows the `agreed` units of this buffer, with times.

        `left` are tokens of text whose audio has left the buffer. Nothing is returned for silence,
        noise, music and loops.
        """
        tokenizer = self._tokenizer(language)
        prefix = [token for unit in agreed for token in unit.tokens]
        prompt = [*tokenizer.sot_sequence, tokenizer.no_timestamps]
        if left and PROMPT_TOKENS:
            prompt = [tokenizer.sot_prev, *left[-PROMPT_TOKENS:], *prompt]
        cap = 16 + TOKENS_PER_SECOND * (encoded.end_sample - encoded.start_sample) // SAMPLE_RATE
        result = self._model.model.generate(
            encoded.output,
            [[*prompt, *prefix]],
            beam_size=1,
            max_length=min(len(prompt) + cap, self._model.max_length),
            return_scores=True,
            return_no_speech_prob=True,
            # It forbids the end of the text at the first free token: after a prefix that says all
            # there is, the sentence would be said again.
            suppress_blank=not prefix,
            suppress_tokens=self._suppressed(language),
        )[0]
        tokens = [token for token in result.sequences_ids[0] if token < tokenizer.eot]
        text = tokenizer.decode(tokens).strip()
        if not text or tokens[: len(prefix)] != prefix or _is_loop(text):
            return []
        if not agreed and _is_noise(result.scores[0], result.no_speech_prob):
            return []
        units = self._timed(encoded, language, tokens, skip=len(prefix), agreed=agreed)
        kept = without_loops([*agreed, *units])
        return kept[len(agreed) :]

    def _timed(
        self,
        encoded: Encoded,
        language: str,
        tokens: list[int],
        *,
        skip: int,
        agreed: Sequence[Unit],
    ) -> list[Unit]:
        """Units of `tokens` after the first `skip`, aligned with the audio."""
        tokenizer = self._tokenizer(language)
        texts, groups = tokenizer.split_tokens_on_unicode(tokens[skip:])
        spellings = spell(
            [(text, tuple(group)) for text, group in zip(texts, groups, strict=True)],
            is_spaced=language not in UNSPACED_LANGUAGES,
            follows=agreed[-1].word.text if agreed else "",
        )
        if not spellings:
            return []
        aligned = self._model.model.align(
            encoded.output, tokenizer.sot_sequence, [tokens], encoded.frames, median_filter_width=7
        )[0]
        text_indices = np.array([pair[0] for pair in aligned.alignments])
        frames = np.array([pair[1] for pair in aligned.alignments])
        # One time per token, and the end: the frame at which the path steps to it.
        steps = frames[np.diff(text_indices, prepend=-1) > 0]
        offset_ms = samples_to_ms(encoded.start_sample)
        spans, confidences = [], []
        first = skip
        for spelling in spellings:
            last = first + len(spelling.tokens)
            ends = steps[min(first, len(steps) - 1)], steps[min(last, len(steps) - 1)]
            spans.append((offset_ms + int(ends[0]) * 20, offset_ms + int(ends[1]) * 20))
            confidences.append(float(np.mean(aligned.text_token_probs[first:last])))
            first = last
        ordered = in_order(
            spans,
            start_ms=max([offset_ms, *(unit.word.end_ms for unit in agreed[-1:])]),
            end_ms=samples_to_ms(encoded.end_sample),
        )
        return [
            Unit(
                Word(spelling.text, begin, end, round(confidence, 3), spelling.has_space_before),
                spelling.tokens,
            )
            for spelling, (begin, end), confidence in zip(
                spellings, ordered, confidences, strict=True
            )
        ]

    def _make_tokenizer(self, language: str) -> Any:
        from faster_whisper.tokenizer import Tokenizer

        return Tokenizer(
            self._model.hf_tokenizer, self.is_multilingual, task="transcribe", language=language
        )

    def _find_suppressed(self, language: str) -> list[int]:
        from faster_whisper.transcribe import get_suppressed_tokens

        return list(get_suppressed_tokens(self._tokenizer(language), [-1]))


def _is_loop(text: str) -> bool:
    data = text.encode()
    return len(data) / len(zlib.compress(data)) > MAX_COMPRESSION_RATIO


def _is_noise(score: float, no_speech_probability: float) -> bool:
    """`score` is the mean log-probability of a token."""
    return no_speech_probability > NO_SPEECH and score < MIN_LOG_PROBABILITY
