"""The engine: streams in, events out, one model step at a time.

One thread owns an Engine and its models. `open_stream` and `close_stream` take and free a place in
them; of the other verbs `step` alone calls them. A model's exception closes the streams of that
call and no other: each is reported by a Failed event.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from asr_engine.audio import FloatSamples
from asr_engine.endpointing import EndpointRules
from asr_engine.errors import (
    NoFreeSlotError,
    OverloadedError,
    StreamError,
    UnknownStreamError,
    UnsupportedLanguageError,
    UnsupportedModeError,
    place_of,
)
from asr_engine.events import (
    EndpointReason,
    Failed,
    Final,
    Lag,
    Partial,
    StreamEvent,
)
from asr_engine.ports import (
    Capabilities,
    Chunk,
    Clock,
    Hypothesis,
    StreamingModel,
    VoiceActivityDetector,
)
from asr_engine.streaming.load import BUSY_SHARE, TOLERATED_LAG_MS, LoadMeter
from asr_engine.streaming.metrics import EngineMetrics
from asr_engine.streaming.scheduler import Batch, ReadyStream, Scheduler
from asr_engine.streaming.slots import SlotPool
from asr_engine.streaming.stream import Stream

WINDOWS_PER_STEP = 256
"""Rounds of voice activity before a model step: about eight seconds of audio of a laggard."""
FAILURES_OF_A_BROKEN_MODEL = 10
"""Model calls in a row that failed: not this audio is at fault, the model is (a GPU was lost)."""
LAG_NOTE_MS = 2000
LAG_NOTE_EVERY_S = 1.0

log = structlog.get_logger(__name__)


class MonotonicClock:
    def now(self) -> float:
        return time.monotonic()


class Engine:
    """Streams of one model. `slots` 0 takes the model's advice.

    An utterance of a continuous model cannot be heard twice, so that `rules.cut_search_ms` counts
    only for a gated one.
    """

    def __init__(
        self,
        model: StreamingModel,
        detector: VoiceActivityDetector,
        rules: EndpointRules | None = None,
        clock: Clock | None = None,
        *,
        slots: int = 0,
    ) -> None:
        self.capabilities: Capabilities = model.capabilities
        self.metrics = EngineMetrics(self.capabilities.modes_ms)
        self._model = model
        self._detector = detector
        rules = rules or EndpointRules()
        self._rules = rules if self.capabilities.is_gated else replace(rules, cut_search_ms=0)
        self._clock: Clock = clock or MonotonicClock()
        self._scheduler = Scheduler(
            self.capabilities.batch_limit, self.capabilities.takes_longer_chunks
        )
        advised = self.capabilities.slots
        self._slots = SlotPool(min(slots, advised) if slots else advised)
        self._load = LoadMeter(
            batch_limit=self.capabilities.batch_limit,
            takes_longer_chunks=self.capabilities.takes_longer_chunks,
        )
        self._mode_of_length = {
            samples: mode_ms for mode_ms, samples in self.capabilities.chunk_samples.items()
        }
        self._streams: dict[str, Stream] = {}
        # A step costs what the streams cost that may have something to do: those that were told
        # something since the last step, that did something in it, or that wait for a place in one.
        self._awake: dict[str, Stream] = {}
        self._stirred: dict[str, Stream] = {}
        self._lag_noted_at_s: dict[str, float] = {}
        self._events: list[StreamEvent] = []
        self._failures_in_a_row = 0
        self._count_streams()

    # Verbs ----------------------------------------------------------------------------------------

    def check_admission(self, *, mode_ms: int = 0) -> None:
        """Raises NoFreeSlotError or OverloadedError when a new stream would be refused.

        `mode_ms` is the mode that it asks for (0: the model's default). An idle engine takes any.
        """
        if self._slots.free == 0:
            raise NoFreeSlotError
        if not self._streams:
            return
        lag_ms = max(self.behind_ms().values(), default=0)
        share = self._busy_share_with(mode_ms or self.capabilities.default_mode_ms)
        if lag_ms > TOLERATED_LAG_MS or share > BUSY_SHARE:
            log.info(
                "stream_would_be_late",
                streams=len(self._streams),
                lag_ms=lag_ms,
                busy_percent=round(100 * share),
            )
            raise OverloadedError

    def open_stream(
        self,
        stream: str,
        *,
        language: str | None = None,
        mode_ms: int = 0,
        next_utterance: int = 0,
        first_sample: int = 0,
    ) -> int:
        """Take a slot; returns the mode in ms (0 asks for the model's default).

        Raises StreamError when it is open already, NoFreeSlotError, UnsupportedModeError,
        UnsupportedLanguageError. Does not look at the load: that is `check_admission`.
        """
        if stream in self._streams:
            raise StreamError("stream is already open")
        mode_ms = mode_ms or self.capabilities.default_mode_ms
        if mode_ms not in self.capabilities.chunk_samples:
            raise UnsupportedModeError
        self._slots.take(stream)
        try:
            self._model.open(stream, language=language, mode_ms=mode_ms)
            self._detector.open(stream)
        except BaseException:
            self._model.close(stream)
            self._slots.give_back(stream)
            raise
        self._streams[stream] = Stream(
            stream,
            capabilities=self.capabilities,
            rules=self._rules,
            window_samples=self._detector.window_samples,
            mode_ms=mode_ms,
            language=language,
            next_utterance=next_utterance,
            first_sample=first_sample,
        )
        self._count_streams()
        return mode_ms

    def accept_audio(
        self,
        stream: str,
        first_sample: int,
        samples: FloatSamples,
        *,
        arrived_at_s: float | None = None,
    ) -> None:
        """Take a packet of any size: float32 [n], 16 kHz, at `first_sample` of the stream's clock.

        What is held already is dropped, a jump is a gap. `arrived_at_s` on the engine's clock says
        when it came, if not now. Raises UnknownStreamError, and StreamError beyond 150 s of audio
        or after `end_audio`.
        """
        now = self._clock.now() if arrived_at_s is None else arrived_at_s
        self._wake(stream).accept(first_sample, samples, now=now)

    def pause(self, stream: str) -> None:
        """Close the utterance at the last sample; audio may go on from there."""
        self._wake(stream).audio.close_span(EndpointReason.PAUSE)

    def end_audio(
        self, stream: str, *, reason: EndpointReason = EndpointReason.END_OF_AUDIO
    ) -> None:
        """No more audio: the last words become final, then `Ended` comes."""
        self._wake(stream).audio.end(reason)

    def set_mode(self, stream: str, *, mode_ms: int) -> None:
        """Change the latency mode before the stream's next chunk.

        A model that does not mix chunks first finishes an endpoint that waits. Raises
        UnsupportedModeError.
        """
        if mode_ms not in self.capabilities.chunk_samples:
            raise UnsupportedModeError
        self._wake(stream).wanted_mode_ms = mode_ms

    def set_language(self, stream: str, *, language: str | None) -> None:
        """Change the spoken language (None: detect it) from the stream's next utterance on.

        Raises UnsupportedLanguageError.
        """
        if not self.capabilities.knows(language):
            raise UnsupportedLanguageError
        self._wake(stream).wanted_language = language

    def ready_streams(self) -> list[ReadyStream]:
        """Streams that have audio for a model step now."""
        return [item for stream in self._awake.values() if (item := stream.ready())]

    def step(self) -> bool:
        """Voice activity, then at most one model step, then the endpoints that are due.

        False when there was nothing to do.
        """
        started = self._clock.now()
        has_worked = self._change_modes() | self._listen() | self._finish_due()
        has_worked |= self._change_languages()
        ready = self.ready_streams()
        batch = self._scheduler.plan(ready, self._clock.now())
        if batch is not None:
            self._run(batch)
            self._finish_due()
            has_worked = True
        self._note_lag()
        self._let_sleep(ready)
        if has_worked:
            now = self._clock.now()
            self._load.add_turn(now=now, busy_s=now - started)
        return has_worked

    def take_events(self) -> list[StreamEvent]:
        """All events since the last call, in order."""
        events, self._events = self._events, []
        return events

    def close_stream(self, stream: str) -> None:
        """Free the slot. Harmless for an unknown stream; what was not final is lost."""
        if self._streams.pop(stream, None) is None:
            return
        self._awake.pop(stream, None)
        self._stirred.pop(stream, None)
        self._lag_noted_at_s.pop(stream, None)
        self._model.close(stream)
        self._detector.close(stream)
        self._slots.give_back(stream)
        self._count_streams()

    # State ----------------------------------------------------------------------------------------

    @property
    def slots(self) -> int:
        return self._slots.capacity

    @property
    def free_slots(self) -> int:
        return self._slots.free

    @property
    def is_broken(self) -> bool:
        """The model fails whatever it is given: only a new process mends that."""
        return self._failures_in_a_row >= FAILURES_OF_A_BROKEN_MODEL

    def behind_ms(self) -> dict[str, int]:
        """How far the model is behind the audio that is held, by stream that it is behind with."""
        return {
            name: behind for name, stream in self._awake.items() if (behind := stream.behind_ms)
        }

    def quiet_streams(self) -> list[str]:
        """Streams in which nobody speaks at present: one may leave without hearing a word twice."""
        return [name for name, stream in self._streams.items() if stream.is_between_utterances]

    def _busy_share_with(self, mode_ms: int) -> float:
        """Share of the time that the engine would be busy with one stream more in `mode_ms`."""
        lengths = self.capabilities.chunk_samples
        counts = Counter(stream.chunk_samples for stream in self._streams.values())
        counts[lengths.get(mode_ms, lengths[self.capabilities.default_mode_ms])] += 1
        return self._load.busy_share(counts, now=self._clock.now())

    # One step -------------------------------------------------------------------------------------

    def _change_modes(self) -> bool:
        has_changed = False
        for name, stream in list(self._awake.items()):
            if stream.wanted_mode_ms == stream.mode_ms:
                continue
            if stream.closing is None or self.capabilities.mixes_chunks:
                mode_ms = stream.wanted_mode_ms

                def change(name: str = name, mode_ms: int = mode_ms) -> None:
                    self._model.set_mode(name, mode_ms=mode_ms)

                if self._guard([name], change):
                    stream.mode_ms = mode_ms
                    self._stirred[name] = stream
                    self._count_streams()
                has_changed = True
        return has_changed

    def _change_languages(self) -> bool:
        """A model takes a language when it opens a stream: between two utterances it is opened
        anew, which costs the audio nothing, since nobody speaks."""
        has_changed = False
        for name, stream in list(self._awake.items()):
            if stream.wanted_language == stream.language:
                continue
            self._stirred[name] = stream
            if not stream.is_between_utterances:
                continue
            language, mode_ms = stream.wanted_language, stream.mode_ms

            def change(
                name: str = name, language: str | None = language, mode_ms: int = mode_ms
            ) -> None:
                self._model.close(name)
                self._model.open(name, language=language, mode_ms=mode_ms)

            if self._guard([name], change):
                stream.language = language
            has_changed = True
        return has_changed

    def _listen(self) -> bool:
        """Let the detector hear what came, one window a stream in each call."""
        has_heard = False
        listening: Sequence[Stream] = list(self._awake.values())
        for _round in range(WINDOWS_PER_STEP):
            windows = [window for stream in listening if (window := stream.next_window())]
            if not windows:
                break
            has_heard = True
            self._detect(windows)
            listening = [
                stream for window in windows if (stream := self._streams.get(window.stream))
            ]
            self._stirred.update((stream.name, stream) for stream in listening)
        now = self._clock.now()
        for stream in self._awake.values():
            stream.settle(now=now)
            if note := stream.note_silence():
                self._events.append(note)
        return has_heard

    def _detect(self, windows: Sequence[Chunk]) -> None:
        heard: list[float] = []
        names = [window.stream for window in windows]
        if self._guard(names, lambda: heard.extend(self._detector.detect(windows))):
            now = self._clock.now()
            for window, probability in zip(windows, heard, strict=True):
                self._streams[window.stream].hear(window, probability, now=now)

    def _run(self, batch: Batch) -> None:
        chunks = [
            self._streams[planned.stream].take_chunk(planned.samples) for planned in batch.chunks
        ]
        hypotheses: list[Hypothesis] = []
        started = self._clock.now()
        metrics = self.metrics.modes[self._mode_of_length[batch.chunk_samples]]
        metrics.ready_age_seconds.observe(max(0.0, started - batch.ready_at_s))
        if not self._guard(
            [chunk.stream for chunk in chunks],
            lambda: hypotheses.extend(self._model.step(chunks)),
        ):
            self._failures_in_a_row += 1
            return
        self._failures_in_a_row = 0
        now = self._clock.now()
        # The short last chunk of an utterance costs nothing before `finish`.
        whole = sum(len(chunk.samples) >= batch.chunk_samples for chunk in chunks)
        if whole:
            self._load.add_step(
                now=now, chunk_samples=batch.chunk_samples, streams=whole, busy_s=now - started
            )
        metrics.step_seconds.observe(now - started)
        metrics.batch_streams.observe(len(chunks))
        for planned, hypothesis in zip(batch.chunks, hypotheses, strict=True):
            stream = self._stirred[planned.stream] = self._streams[planned.stream]
            late = max(0.0, now - planned.deadline_s)
            self.metrics.modes[stream.mode_ms].chunk_lag_seconds.observe(late)
            if partial := stream.partial(hypothesis):
                self._tell_partial(stream, partial, now)

    def _tell_partial(self, stream: Stream, partial: Partial, now: float) -> None:
        self._events.append(partial)
        if stream.speech_arrived_at_s is not None:
            waited = now - stream.speech_arrived_at_s
            self.metrics.modes[stream.mode_ms].first_partial_seconds.observe(waited)
            stream.speech_arrived_at_s = None

    def _finish_due(self) -> bool:
        """Close the utterances whose endpoint is fed, until none is due."""
        has_finished = False
        while due := [stream for stream in self._awake.values() if stream.is_due]:
            has_finished = True
            self._stirred.update((stream.name, stream) for stream in due)
            by_model = [stream for stream in due if stream.needs_model_to_finish]
            for stream in due:
                if not stream.needs_model_to_finish:
                    self._close_utterance(stream, None)
            limit = self.capabilities.batch_limit
            for first in range(0, len(by_model), limit):
                self._finish_by_model(by_model[first : first + limit])
        return has_finished

    def _finish_by_model(self, streams: Sequence[Stream]) -> None:
        names = [stream.name for stream in streams]
        hypotheses: list[Hypothesis] = []
        if not self._guard(names, lambda: hypotheses.extend(self._model.finish(names))):
            self._failures_in_a_row += 1
            return
        self._failures_in_a_row = 0
        for stream, hypothesis in zip(streams, hypotheses, strict=True):
            self._close_utterance(stream, hypothesis)

    def _close_utterance(self, stream: Stream, hypothesis: Hypothesis | None) -> None:
        span = stream.audio.span
        events = stream.finish(hypothesis)
        self._events += events
        now = self._clock.now()
        for event in events:
            if isinstance(event, Final):
                delay = max(0.0, now - event.decided_at_s)
                self.metrics.modes[stream.mode_ms].finalisation_delay_seconds.observe(delay)
        if stream.audio.span is not span:
            # The detector's state belongs to audio that does not lead up to the next span.
            self._detector.close(stream.name)
            self._detector.open(stream.name)
        stream.settle(now=now)

    def _guard(self, streams: Sequence[str], call: Callable[[], object]) -> bool:
        """Call a model for `streams`; after an exception close them. False when it failed."""
        try:
            call()
        except Exception as error:  # noqa: BLE001 -- a backend may raise anything; others go on
            # The type alone: a decoder's message may hold what was said.
            log.error(  # noqa: TRY400 -- for the same reason no traceback
                "model_failed",
                error=type(error).__name__,
                place=place_of(error),
                streams=len(streams),
            )
            for name in streams:
                stream = self._streams[name]
                failed = Failed(name, stream.next_utterance, stream.resume_sample)
                self.metrics.failed_streams_total.inc()
                self.close_stream(name)
                self._events.append(failed)
            return False
        return True

    def _note_lag(self) -> None:
        """Say who lags: once a second while behind, and once when it has caught up."""
        now = self._clock.now()
        for name, stream in self._awake.items():
            behind = stream.behind_ms
            noted_at = self._lag_noted_at_s.get(name)
            if behind >= LAG_NOTE_MS:
                if noted_at is None or now - noted_at >= LAG_NOTE_EVERY_S:
                    self._lag_noted_at_s[name] = now
                    self._events.append(Lag(name, behind))
            elif noted_at is not None and behind < LAG_NOTE_MS // 2:
                del self._lag_noted_at_s[name]
                self._events.append(Lag(name, 0))

    def _count_streams(self) -> None:
        self.metrics.slots.set(self._slots.capacity)
        self.metrics.free_slots.set(self._slots.free)
        counts = Counter(stream.mode_ms for stream in self._streams.values())
        for mode_ms, metrics in self.metrics.modes.items():
            metrics.streams.set(counts[mode_ms])

    def _wake(self, name: str) -> Stream:
        try:
            stream = self._awake[name] = self._streams[name]
        except KeyError:
            raise UnknownStreamError from None
        return stream

    def _let_sleep(self, ready: Sequence[ReadyStream]) -> None:
        """Pass over, from the next step on, who did nothing in this one and waits for nothing."""
        for item in ready:
            if stream := self._streams.get(item.stream):
                self._stirred[item.stream] = stream
        self._awake, self._stirred = self._stirred, {}
