"""Whisper on CTranslate2 as a BatchModel: encode once, decode batched, words timed by alignment.

The decoding is that of faster-whisper's BatchedInferencePipeline, with its N-best kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from asr_engine.audio import SAMPLE_RATE, samples_to_ms
from asr_engine.backends.whisper_models import load_whisper
from asr_engine.config import EngineSettings
from asr_engine.errors import UnsupportedLanguageError
from asr_engine.ports import SHORT_SAMPLES, Candidate, DecodeOptions, Onward, Window
from asr_engine.results import Segment, Word, join_words

CPU_BATCH: Final = 8
"""A CPU reads all weights for each step of a decoder: eight windows of 30 s at once take half of
what they take two by two. Between two batches alone does a job look whether live streams should go
first, or whether somebody cancelled it: a batch takes a few seconds."""
GPU_BATCH: Final = 16
CPU_REFINE_SHARE: Final = 0.3
"""Of long speech, where a beam search over everything would take more than half of the draft's
time."""

MAX_FRAMES: Final = 3000
"""30 s, on which Whisper was trained."""
SHORT_FRAMES: Final = 1500
"""15 s, which cost a CPU a quarter. Whisper reads them as well where silence follows the speech: on
103 short recordings both made as many errors."""

TIME_SAMPLES: Final = SAMPLE_RATE // 50
"""Whisper's tokens for times are so far apart."""
NO_REPEAT_WORDS: Final = 3
"""Tokens of a run that may not come twice where repetition is avoided."""

PREPENDED: Final = "\"'“¿([{-"
APPENDED: Final = "\"'.。,，!！?？:：”)]}、"


def create(settings: EngineSettings) -> WhisperBatchModel:
    """Raises ModelMissingError, ModelUnverifiedError."""
    return WhisperBatchModel(
        load_whisper(settings, settings.batch_model),
        settings.batch_model,
        refine_share=settings.refine_share,
    )


@dataclass(frozen=True, slots=True)
class _Encoded:
    """Encoder output [n, 1500, state] of n windows, on the model's device."""

    output: Any


class WhisperBatchModel:
    """One Whisper model; used by one thread."""

    def __init__(self, model: Any, name: str, *, refine_share: float = 0.0) -> None:
        self._whisper = model
        self._name = name
        self._refine_share = refine_share
        self._tokenizers: dict[str, Any] = {}

    @property
    def name(self) -> str:
        return self._name

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(self._whisper.supported_languages)

    @property
    def batch_windows(self) -> int:
        return CPU_BATCH if self._is_on_cpu else GPU_BATCH

    @property
    def refine_share(self) -> float:
        return self._refine_share or (CPU_REFINE_SHARE if self._is_on_cpu else 1.0)

    @property
    def _is_on_cpu(self) -> bool:
        return bool(self._whisper.model.device == "cpu")

    @property
    def works_beside(self) -> bool:
        return not self._is_on_cpu

    def prepare(self, window: Window) -> Window:
        return replace(window, features=self._features(window, MAX_FRAMES))

    def encode(self, windows: Sequence[Window], *, room_samples: int = 0) -> _Encoded:
        import ctranslate2

        longest = max([room_samples, *(len(window.samples) for window in windows)])
        frames = self._frames(longest)
        features = [
            window.features
            if isinstance(window.features, np.ndarray)
            else self._features(window, frames)
            for window in windows
        ]
        if not self._is_on_cpu:
            return _Encoded(self._whisper.encode(np.stack(features)))
        # A CPU gains nothing from more at once, and attention over 30 s takes 80 MB a window.
        outputs = [self._whisper.encode(one[np.newaxis]) for one in features]
        rows = [np.array(output, copy=False)[0] for output in outputs]
        return _Encoded(ctranslate2.StorageView.from_array(np.stack(rows)))

    def _frames(self, samples: int) -> int:
        """Mel frames that the encoder hears for a window of `samples`."""
        return SHORT_FRAMES if self._is_on_cpu and samples <= SHORT_SAMPLES else MAX_FRAMES

    def _features(self, window: Window, frames: int) -> NDArray[np.float32]:
        """Mel features [n, frames], zeros where the window has ended."""
        from faster_whisper.audio import pad_or_trim

        features: NDArray[np.float32] = pad_or_trim(
            self._whisper.feature_extractor(window.samples)[:, :-1], frames
        )
        return features

    def gather(self, places: Sequence[tuple[object, int]]) -> _Encoded:
        import ctranslate2

        outputs = [_output(encoded) for encoded, _ in places]
        indices = [index for _, index in places]
        first = outputs[0]
        is_whole = all(output is first for output in outputs) and len(indices) == first.shape[0]
        if is_whole and indices == list(range(len(indices))):
            return _Encoded(first)
        # Only what lies in the host's memory can be indexed; it is a few megabytes a window.
        host = {id(output): output for output in outputs}
        if first.device != "cpu":
            host = {key: output.to_device(ctranslate2.Device.cpu) for key, output in host.items()}
        held = {key: np.array(output, copy=False) for key, output in host.items()}
        rows = [held[id(output)][index] for output, index in zip(outputs, indices, strict=True)]
        chosen = ctranslate2.StorageView.from_array(np.stack(rows))
        if first.device != "cpu":
            chosen = chosen.to_device(ctranslate2.Device.cuda)
        return _Encoded(chosen)

    def language_scores(self, windows: Sequence[Window], encoded: object) -> list[dict[str, float]]:
        if not self._whisper.model.is_multilingual:
            return [{"en": 1.0} for _ in windows]
        return [
            {token.strip("<|>"): probability for token, probability in guess}
            for guess in self._whisper.model.detect_language(_output(encoded))
        ]

    def decode(
        self,
        windows: Sequence[Window],
        encoded: object,
        *,
        languages: Sequence[str],
        options: DecodeOptions,
    ) -> list[list[Candidate]]:
        """Raises UnsupportedLanguageError."""
        del windows
        tokenizers = [self._tokenizer(language) for language in languages]
        prompts = [
            self._whisper.get_prompt(
                tokenizer, [], without_timestamps=True, hotwords=options.hotwords or None
            )
            for tokenizer in tokenizers
        ]
        results = self._generate(encoded, tokenizers, prompts, options)
        return [
            _candidates(tokenizer, result)
            for tokenizer, result in zip(tokenizers, results, strict=True)
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
        """The decoder is told what was said before, and the time at which to begin: Whisper has
        tokens for both. Raises UnsupportedLanguageError."""
        del windows
        heard = []
        # One by one: CTranslate2 wants prompts of one length.
        for index, (onward, language) in enumerate(zip(onwards, languages, strict=True)):
            tokenizer = self._tokenizer(language)
            before = tokenizer.encode(_spelt(onward.before))
            prompt = self._whisper.get_prompt(
                tokenizer, before, without_timestamps=False, hotwords=options.hotwords or None
            )
            begin = tokenizer.timestamp_begin + onward.sample // TIME_SAMPLES
            (result,) = self._generate(
                self.gather([(encoded, index)]), [tokenizer], [[*prompt, begin]], options
            )
            heard.append(
                [
                    _after(tokenizer, before, candidate)
                    for candidate in _candidates(tokenizer, result)
                    if candidate.text
                ]
            )
        return heard

    def _generate(
        self,
        encoded: object,
        tokenizers: Sequence[Any],
        prompts: Sequence[Sequence[int]],
        options: DecodeOptions,
    ) -> Any:
        from faster_whisper.transcribe import get_suppressed_tokens

        return self._whisper.model.generate(
            _output(encoded),
            prompts,
            max_length=self._whisper.max_length,
            suppress_blank=True,
            # What is suppressed is the same in every language.
            suppress_tokens=get_suppressed_tokens(tokenizers[0], [-1]),
            return_scores=True,
            return_no_speech_prob=True,
            # What is heard on may begin anywhere in the window, not only in its first second.
            max_initial_timestamp_index=MAX_FRAMES // 2,
            num_hypotheses=options.candidates,
            no_repeat_ngram_size=NO_REPEAT_WORDS if options.avoids_repetition else 0,
            **_search(options),
        )

    def time_words(
        self,
        windows: Sequence[Window],
        encoded: object,
        candidates: Sequence[Candidate],
        *,
        languages: Sequence[str],
    ) -> list[list[Segment]]:
        """At most one segment for each window. Raises UnsupportedLanguageError."""
        timed: list[list[Segment]] = [[] for _ in windows]
        for language in dict.fromkeys(languages):
            alike = [index for index, other in enumerate(languages) if other == language]
            output = _output(self.gather([(encoded, index) for index in alike]))
            aligned = self._align(
                output,
                [windows[index] for index in alike],
                [candidates[index] for index in alike],
                self._tokenizer(language),
            )
            for index, words in zip(alike, aligned, strict=True):
                timed[index] = _segments(windows[index], candidates[index], words, language)
        return timed

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

    def _align(
        self,
        output: Any,
        windows: Sequence[Window],
        candidates: Sequence[Candidate],
        tokenizer: Any,
    ) -> list[list[dict[str, Any]]]:
        from faster_whisper.transcribe import merge_punctuations

        frames = [-(-len(window.samples) * 100 // SAMPLE_RATE) for window in windows]
        aligned: list[list[dict[str, Any]]] = self._whisper.find_alignment(
            tokenizer, [_tokens(candidate) for candidate in candidates], output, frames
        )
        for words in aligned:
            merge_punctuations(words, PREPENDED, APPENDED)
        return aligned


def _search(options: DecodeOptions) -> dict[str, Any]:
    """CTranslate2's options for a search, or for sampling."""
    if options.temperature > 0:
        return {"beam_size": 1, "sampling_topk": 0, "sampling_temperature": options.temperature}
    return {"beam_size": max(options.beam_size, options.candidates)}


def _candidates(tokenizer: Any, result: Any) -> list[Candidate]:
    """Its hypotheses, best first, without those that differ in nothing that is read aloud."""
    from faster_whisper.transcribe import get_compression_ratio

    candidates: dict[str, Candidate] = {}
    for ids, score in zip(result.sequences_ids, result.scores, strict=True):
        tokens = [token for token in ids if token < tokenizer.eot]
        text = tokenizer.decode(tokens).strip()
        candidate = Candidate(
            text=text,
            # The score is the mean over the tokens; the end token counts in it as well.
            mean_log_probability=score * len(ids) / (len(ids) + 1),
            no_speech_probability=result.no_speech_prob,
            compression_ratio=get_compression_ratio(text) if text else 0.0,
            tokens=tokens,
        )
        spoken = "".join(character for character in text.casefold() if character.isalnum())
        held = candidates.get(spoken)
        if held is None or held.mean_log_probability < candidate.mean_log_probability:
            candidates[spoken] = candidate
    return sorted(candidates.values(), key=lambda one: one.mean_log_probability, reverse=True)


def _after(tokenizer: Any, before: list[int], candidate: Candidate) -> Candidate:
    """The candidate with the tokens of what was said before it."""
    tokens = [*before, *_tokens(candidate)]
    return replace(candidate, text=tokenizer.decode(tokens).strip(), tokens=tokens)


def _spelt(words: Sequence[Word]) -> str:
    """As the model's tokens spell them, with the space before the first."""
    return " " * bool(words and words[0].has_space_before) + join_words(words)


def _tokens(candidate: Candidate) -> list[int]:
    if not isinstance(candidate.tokens, list):
        raise TypeError("candidates must come from decode()")
    return candidate.tokens


def _segments(
    window: Window, candidate: Candidate, aligned: list[dict[str, Any]], language: str
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
    if not words:
        return []
    return [
        Segment(
            start_ms=words[0].start_ms,
            end_ms=words[-1].end_ms,
            text=join_words(words),
            words=words,
            language=language,
            mean_log_probability=round(candidate.mean_log_probability, 3),
            no_speech_probability=round(candidate.no_speech_probability, 3),
            compression_ratio=round(candidate.compression_ratio, 2),
        )
    ]


def _output(encoded: object) -> Any:
    if not isinstance(encoded, _Encoded):
        raise TypeError("encoded must come from encode()")
    return encoded.output
