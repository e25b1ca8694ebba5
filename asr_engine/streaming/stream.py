"""One stream: where it is in its audio, its open utterance, and the words that leave it.

All bookkeeping and no model: the engine calls the models and tells the stream what they said.
Every decision hangs on sample positions alone, so the text is the same however the audio came.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from asr_engine.audio import SAMPLE_RATE, FloatSamples, ms_to_samples, samples_to_ms
from asr_engine.endpointing import Activity, Closed, EndpointRules, HeardWindow, Opened, decide
from asr_engine.events import (
    Ended,
    Endpoint,
    EndpointReason,
    Final,
    Gap,
    Partial,
    StreamEvent,
)
from asr_engine.ports import Capabilities, Chunk, Hypothesis
from asr_engine.results import Word, join_words
from asr_engine.streaming.audio import StreamAudio
from asr_engine.streaming.scheduler import ReadyStream
from asr_engine.streaming.tails import plan_tail

SILENCE_NOTE_S = 5
"""Seconds of silence between two notes that a successor may resume later."""
LATE_WORD_MS = 1000
"""How long after the end of speech a word of it may still come: it is shown with the next utterance
rather than lost."""


@dataclass(frozen=True, slots=True)
class Closing:
    """An endpoint that was decided on audio up to `decided_sample`.

    `finish` is due once the whole chunks up to there are fed and, if they do not reach it,
    `needed_sample`.
    """

    reason: EndpointReason
    has_utterance: bool
    speech_end: int
    decided_sample: int
    needed_sample: int
    decided_at_s: float
    cut_sample: int | None = None
    is_end_of_span: bool = False


@dataclass(frozen=True, slots=True)
class _Arrival:
    """Audio before `end_sample` was there at `at_s`."""

    end_sample: int
    at_s: float


class Stream:
    """The engine's side of one live session."""

    def __init__(
        self,
        name: str,
        *,
        capabilities: Capabilities,
        rules: EndpointRules,
        window_samples: int,
        mode_ms: int,
        next_utterance: int,
        first_sample: int,
        language: str | None = None,
    ) -> None:
        self.name = name
        self.mode_ms = mode_ms
        self.wanted_mode_ms = mode_ms
        self.language = language
        self.wanted_language = language
        self.next_utterance = next_utterance
        self.resume_sample = first_sample
        self.audio = StreamAudio(first_sample)
        self.closing: Closing | None = None
        self.speech_arrived_at_s: float | None = None
        self.is_ended = False
        self._capabilities = capabilities
        self._rules = rules
        self._window_samples = window_samples
        self._lengths = sorted(set(capabilities.chunk_samples.values()))
        self._arrivals: deque[_Arrival] = deque()
        self._heard = first_sample
        self._fed = first_sample
        self._activity = Activity()
        self._speech_start = first_sample
        self._last_end_ms = 0
        self._last_speech_end_ms = -LATE_WORD_MS
        self._last_partial = ""

    # Audio in -------------------------------------------------------------------------------------

    def accept(self, first_sample: int, samples: FloatSamples, *, now: float) -> None:
        self.audio.accept(first_sample, samples)
        self._arrivals.append(_Arrival(self.audio.end_sample, now))

    @property
    def behind_ms(self) -> int:
        """Audio held beyond the chunk that is being gathered, not yet heard by the model."""
        waiting = self.audio.samples_after(self._position) - self.chunk_samples
        return samples_to_ms(max(0, waiting))

    @property
    def chunk_samples(self) -> int:
        return self._capabilities.chunk_samples[self.mode_ms]

    @property
    def _position(self) -> int:
        if self._capabilities.is_gated and not self._has_utterance:
            return self._heard
        return self._fed

    @property
    def _has_utterance(self) -> bool:
        return self._activity.is_open or (self.closing is not None and self.closing.has_utterance)

    @property
    def is_between_utterances(self) -> bool:
        """Nobody speaks, and no endpoint waits: the model may forget what it heard."""
        return not (self._has_utterance or self._activity.is_speaking or self.closing is not None)

    # Voice activity -------------------------------------------------------------------------------

    def next_window(self) -> Chunk | None:
        """The next window for the detector. None while an endpoint waits to be finished, so that
        the detector never runs ahead of an utterance that it closed."""
        span = self.audio.span
        if self.closing is not None or self._heard >= span.end_sample:
            return None
        end = self._heard + self._window_samples
        if end > span.end_sample and span.closed_by is None:
            return None
        return Chunk(self.name, span.read(self._heard, end), self._heard)

    def hear(self, window: Chunk, probability: float, *, now: float) -> None:
        """Take the detector's verdict on the window that `next_window` gave."""
        heard = HeardWindow(self._heard, self._heard + len(window.samples), probability)
        self._heard = heard.end_sample
        self._activity, decision = decide(self._activity, heard, self._rules)
        if isinstance(decision, Opened):
            self._open(decision)
        elif isinstance(decision, Closed):
            self.closing = self._closing_at(decision, now)

    def settle(self, *, now: float) -> None:
        """Close what is open once a closed span is heard to its end."""
        span = self.audio.span
        if self.is_ended or self.closing is not None or span.closed_by is None:
            return
        if self._heard >= span.end_sample:
            end = span.end_sample
            context = ms_to_samples(self._capabilities.finish_context_ms)
            self.closing = Closing(
                reason=span.closed_by,
                has_utterance=self._activity.is_open,
                speech_end=min(self._activity.speech_end, end),
                decided_sample=end,
                needed_sample=end if self._capabilities.is_gated else end + context,
                decided_at_s=now,
                is_end_of_span=True,
            )
            self._activity = Activity()

    def _open(self, decision: Opened) -> None:
        self._speech_start = decision.speech_start
        self.speech_arrived_at_s = self._arrived_at(decision.speech_start + 1)
        if self._capabilities.is_gated:
            self._fed = max(self._fed, decision.start_sample)

    def _closing_at(self, decision: Closed, now: float) -> Closing:
        needed = decision.speech_end + ms_to_samples(self._capabilities.finish_context_ms)
        if self._capabilities.is_gated:
            needed = min(needed, decision.decided_sample)
        if decision.cut_sample is not None and self._capabilities.is_gated:
            needed = decision.cut_sample
        elif self._activity.is_open:
            # Speech goes on: cut at the whole chunk before, the rest is heard with what follows.
            needed = 0
        return Closing(
            reason=decision.reason,
            has_utterance=True,
            speech_end=decision.speech_end,
            decided_sample=decision.decided_sample,
            needed_sample=needed,
            decided_at_s=now,
            cut_sample=decision.cut_sample,
        )

    # Model ----------------------------------------------------------------------------------------

    def ready(self) -> ReadyStream | None:
        """What may be fed now, if it is enough for a step."""
        if self._capabilities.is_gated and not self._has_utterance:
            return None
        span, closing, length = self.audio.span, self.closing, self._next_length()
        if closing is None:
            limit = min(self._hearable_end, span.end_sample)
        else:
            limit = self._fed + length if self._is_in_tail else closing.decided_sample
            if span.closed_by is None:
                limit = min(limit, span.end_sample)
        available = limit - self._fed
        if not length or available < length:
            return None
        ready_at = self._arrived_at(self._fed + length)
        if closing is not None and self._is_in_tail:
            ready_at = max(ready_at, closing.decided_at_s)
        chunk = self.chunk_samples if self._capabilities.is_gated else length
        return ReadyStream(self.name, chunk, available, ready_at + chunk / SAMPLE_RATE)

    @property
    def _hearable_end(self) -> int:
        """How far the model may hear while no endpoint is decided.

        A continuous model may run ahead of the detector by less than a window, else a chunk that
        ends within a window would wait for the next packet. It stays behind any endpoint.
        """
        ahead = 0 if self._capabilities.is_gated else self._window_samples - 1
        return self._heard + ahead

    @property
    def _is_in_tail(self) -> bool:
        """No whole chunk of the mode is left before the endpoint that was decided."""
        closing = self.closing
        return closing is not None and self._fed + self.chunk_samples > closing.decided_sample

    def _next_length(self) -> int:
        """Samples of the next chunk; 0 when an endpoint needs none any more."""
        closing = self.closing
        if closing is None:
            return self.chunk_samples
        if not closing.has_utterance:
            return 0
        if not self._is_in_tail:
            return self.chunk_samples
        rest = max(0, closing.needed_sample - self._fed)
        if self._capabilities.is_gated or not rest:
            return rest
        known = None if closing.is_end_of_span else closing.decided_sample - self._fed
        lengths = self._lengths if self._capabilities.mixes_chunks else [self.chunk_samples]
        return plan_tail(rest, known, lengths)[0]

    def take_chunk(self, samples: int) -> Chunk:
        """The next `samples` for the model."""
        start = self._fed
        self._fed += samples
        self._forget_arrivals()
        return Chunk(self.name, self.audio.span.read(start, self._fed), start)

    def partial(self, hypothesis: Hypothesis) -> Partial | None:
        """The partial that a hypothesis makes, if it says anything new."""
        if not self._has_utterance:
            return None
        heard = self._without_strays(hypothesis.words)
        text = join_words(heard).strip()
        if not text or text == self._last_partial:
            return None
        self._last_partial = text
        words = self._fit(heard)
        start, end = self._times(words, self._heard)
        stable = len(self._without_strays(hypothesis.words[: hypothesis.stable_words]))
        return Partial(
            self.name,
            self.next_utterance,
            start,
            end,
            text,
            words,
            stable,
            heard_ms=samples_to_ms(self._fed),
            language=hypothesis.language,
        )

    @property
    def is_due(self) -> bool:
        """An endpoint waits for nothing but the model's `finish`."""
        return self.closing is not None and not self._next_length()

    @property
    def needs_model_to_finish(self) -> bool:
        """A gated model that was fed nothing has nothing to finish."""
        return not self._capabilities.is_gated or (
            self.closing is not None and self.closing.has_utterance
        )

    def finish(self, hypothesis: Hypothesis | None) -> list[StreamEvent]:
        """The events of the endpoint that was due; `hypothesis` is the model's last word on it."""
        closing = self.closing
        if closing is None:
            return []
        self.closing = None
        self._last_partial = ""
        events = [self._final(closing, hypothesis)]
        if closing.has_utterance:
            self._last_speech_end_ms = samples_to_ms(closing.speech_end)
        if closing.cut_sample is not None:
            self._speech_start = self._resume_after(closing)
            if self._capabilities.is_gated:
                self._fed = closing.cut_sample
        if closing.is_end_of_span:
            events += self._next_span()
        self._forget()
        return events

    def note_silence(self) -> Endpoint | None:
        """Tell, now and then, that nothing before the present silence is needed any more."""
        if self._has_utterance or self._activity.is_speaking:
            return None
        resume = self._heard - ms_to_samples(self._rules.pre_roll_ms)
        self._forget()
        if resume - self.resume_sample < SILENCE_NOTE_S * SAMPLE_RATE:
            return None
        self.resume_sample = resume
        return Endpoint(self.name, EndpointReason.SILENCE, resume)

    def _final(self, closing: Closing, hypothesis: Hypothesis | None) -> StreamEvent:
        words: tuple[Word, ...] = ()
        if hypothesis is not None and closing.has_utterance:
            words = hypothesis.words
        if closing.cut_sample is not None and self._capabilities.is_gated:
            cut_ms = samples_to_ms(closing.cut_sample)
            words = tuple(word for word in words if word.start_ms + word.end_ms < 2 * cut_ms)
        fitted = self._fit(self._without_strays(words))
        text = join_words(fitted).strip()
        resume = self._resume_after(closing)
        if fitted and not self._capabilities.is_gated:
            # A long chunk may reach into the next utterance: its words are said already.
            resume = max(resume, ms_to_samples(fitted[-1].end_ms))
        self.resume_sample = max(self.resume_sample, resume)
        if not text:
            return Endpoint(self.name, closing.reason, self.resume_sample)
        start, end = self._times(fitted, closing.speech_end)
        final = Final(
            stream=self.name,
            utterance=self.next_utterance,
            start_ms=start,
            end_ms=end,
            text=text,
            words=fitted if self._capabilities.has_word_times else (),
            reason=closing.reason,
            resume_sample=self.resume_sample,
            speech_end_ms=samples_to_ms(closing.speech_end),
            language=hypothesis.language if hypothesis else None,
            decided_at_s=closing.decided_at_s,
        )
        self.next_utterance += 1
        self._last_end_ms = end
        return final

    def _resume_after(self, closing: Closing) -> int:
        """From where a successor must hear the audio again, once `closing` is finished."""
        if closing.is_end_of_span:
            return closing.decided_sample
        if closing.cut_sample is not None:
            return min(self._fed, closing.cut_sample)
        return max(closing.decided_sample, self._fed) - ms_to_samples(self._rules.pre_roll_ms)

    def _without_strays(self, words: tuple[Word, ...]) -> tuple[Word, ...]:
        """`words` without those that a continuous model made of noise before the utterance."""
        if self._capabilities.is_gated or not self._capabilities.has_word_times:
            return words
        begin_ms = samples_to_ms(self._speech_start) - self._rules.pre_roll_ms
        late_ms = self._last_speech_end_ms + LATE_WORD_MS
        return tuple(word for word in words if word.end_ms > begin_ms or word.end_ms <= late_ms)

    def _fit(self, words: Sequence[Word]) -> tuple[Word, ...]:
        """`words` in order, within what follows the last utterance and what was fed."""
        begin = self._last_end_ms
        last = max(begin + 1, samples_to_ms(min(self._fed, self.audio.span.end_sample)))
        fitted = []
        for word in words:
            begin = min(max(word.start_ms, begin), last - 1)
            end = min(max(word.end_ms, begin + 1), last)
            fits = (begin, end) == (word.start_ms, word.end_ms)
            fitted.append(word if fits else replace(word, start_ms=begin, end_ms=end))
        return tuple(fitted)

    def _times(self, words: Sequence[Word], speech_end: int) -> tuple[int, int]:
        start = max(self._last_end_ms, samples_to_ms(self._speech_start))
        if not self._capabilities.has_word_times:
            return start, max(start + 1, samples_to_ms(speech_end))
        if self._capabilities.is_gated:
            start = words[0].start_ms
        # A continuous model's first token comes some time after its word began.
        return min(start, words[0].start_ms), max(word.end_ms for word in words)

    def _next_span(self) -> list[StreamEvent]:
        left = self.audio.span
        if self.audio.is_last_span:
            self.is_ended = True
            return [Ended(self.name, left.end_sample)]
        span = self.audio.next_span()
        self._heard = self._fed = span.start_sample
        self._activity = Activity()
        if span.start_sample == left.end_sample:
            return []
        start_ms = samples_to_ms(left.end_sample)
        end_ms = max(start_ms + 1, samples_to_ms(span.start_sample))
        self.resume_sample = span.start_sample
        return [
            Gap(self.name, start_ms, end_ms),
            Endpoint(self.name, EndpointReason.GAP, span.start_sample),
        ]

    # Bounds ---------------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Drop audio that no utterance can need again."""
        keep = self._heard - ms_to_samples(self._rules.silence_ms + self._rules.pre_roll_ms)
        if self._activity.is_open or self._activity.is_speaking:
            keep = min(keep, self._activity.start_sample)
        if self._has_utterance or not self._capabilities.is_gated:
            keep = min(keep, self._fed)
        self.audio.span.drop_before(keep)
        self._forget_arrivals()

    def _forget_arrivals(self) -> None:
        position = self._position
        while len(self._arrivals) > 1 and self._arrivals[0].end_sample <= position:
            self._arrivals.popleft()

    def _arrived_at(self, sample: int) -> float:
        """When the audio before `sample` was there, or the latest arrival."""
        for arrival in self._arrivals:
            if arrival.end_sample >= sample:
                return arrival.at_s
        return self._arrivals[-1].at_s if self._arrivals else 0.0
