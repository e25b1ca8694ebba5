"""The second pass over live sessions: each closed utterance is heard again soon after its end.

The worker of the batch passes does it, with the model that it has loaded: before a job, between two
batches of one, and when the recorder says that something was closed. Nothing here may cost a job
or a caption: a failure is logged and the utterance keeps its text. What a worker was doing when it
was killed is done again, and stored once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import redis
import structlog
from django.conf import settings

from asr_engine.audio import BYTES_PER_SAMPLE, ms_to_samples, pcm16_to_float
from asr_engine.batch import guards
from asr_engine.batch.rescoring import Rescorer
from asr_engine.batch.two_pass import TwoPassOptions, refine_windows
from asr_engine.batch.windows import MAX_WINDOW_MS
from asr_engine.errors import place_of
from asr_engine.events import EndpointReason
from asr_engine.ports import Window, WindowSpan
from asr_engine.protocol import captions_channel, encode, session_key
from asr_engine.results import Segment, Word, join_words
from asr_engine.scripts import written
from asr_engine.spoken import spoken_units
from transcription.models import LiveUtterance
from transcription.runners.pacing import LivePace
from transcription.runners.slices import Models
from transcription.services import live_refinement, live_sessions
from transcription.services.glossary import phrases_for
from transcription.services.live_refinement import ASKED_KEY

log = structlog.get_logger(__name__)

TURN_S: Final = 10.0
"""After so much work others get their turn: a job's next batch."""
LOOK_EVERY_S: Final = 1.0
"""Between two looks at what waits, where a job asks between its batches."""
PAD_MS: Final = 400
"""Audio around an utterance that the model hears as well, as in the batch passes."""
LEAST_SHARE: Final = 0.5
"""Of the live text's length: a pass that heard less has passed over speech."""
CLAIM_S: Final = 120
"""Life of a worker's claim on an utterance, if it dies and never comes back."""


@dataclass(frozen=True, slots=True)
class _Heard:
    """An utterance of ours, and its audio."""

    utterance: LiveUtterance
    window: Window

    @property
    def language(self) -> str:
        """Empty where it is to be detected."""
        return self.utterance.language or self.utterance.session.language


class LiveRefiner:
    """One worker's, named `worker`; `load` gives its models when there is something to hear."""

    def __init__(self, *, worker: str, load: Callable[[], Models]) -> None:
        self._worker = worker
        self._load = load
        self._pace = LivePace()
        self._looked_at_s = 0.0

    def take_turn_between(self, *, must_stop: Callable[[], bool]) -> None:
        """`take_turn`, at most once in LOOK_EVERY_S, and for no longer than the job has had."""
        since_s = time.monotonic() - self._looked_at_s
        if since_s >= LOOK_EVERY_S:
            self.take_turn(must_stop=must_stop, turn_s=min(TURN_S, since_s))

    def take_turn(self, *, must_stop: Callable[[], bool], turn_s: float = TURN_S) -> None:
        """Hear what waits: a batch, or more for `turn_s`, until `must_stop`. Raises nothing."""
        if settings.SITE.live_refine == "off":
            return
        try:
            self._work(must_stop, time.monotonic() + turn_s)
        except Exception as error:  # noqa: BLE001 - the job that waits behind must not suffer
            # Its text could quote what was said, so only its kind and its place are logged.
            log.error(  # noqa: TRY400 - no traceback for the same reason
                "live_refine_failed", error=type(error).__name__, place=place_of(error)
            )
        self._looked_at_s = time.monotonic()

    def _work(self, must_stop: Callable[[], bool], ends_at_s: float) -> None:
        url = settings.SITE.broker_url
        with redis.Redis.from_url(url, socket_timeout=30) as broker:
            broker.delete(ASKED_KEY)
            while live_refinement.has_due() and not self._must_wait(must_stop) and not must_stop():
                models = self._load()
                batch = self._claim_batch(broker, models.model.batch_windows)
                if batch:
                    self._refine(broker, models, batch)
                if not batch or time.monotonic() >= ends_at_s:
                    return

    def _must_wait(self, must_stop: Callable[[], bool]) -> bool:
        """Live captions come first: late ones make this wait, or leave it for another time."""
        if settings.SITE.live_refine == "auto":
            return self._pace.is_live_late()
        return self._pace.wait_for_live(stop=must_stop)

    # What waits -------------------------------------------------------------------------------

    def _claim_batch(self, broker: redis.Redis, size: int) -> list[_Heard]:
        batch: list[_Heard] = []
        for utterance in live_refinement.due_utterances():
            if len(batch) == size:
                break
            window = window_of(utterance, _samples_on_disk(broker, utterance))
            if window is not None and self._claim(broker, utterance):
                batch.append(_Heard(utterance, window))
        return batch

    def _claim(self, broker: redis.Redis, utterance: LiveUtterance) -> bool:
        """Two workers need not hear the same. What our dead predecessor had is ours."""
        holder: Any = broker.set(_claim_key(utterance), self._worker, nx=True, get=True, ex=CLAIM_S)
        return holder is None or holder.decode() == self._worker

    # What is heard ----------------------------------------------------------------------------

    def _refine(self, broker: redis.Redis, models: Models, batch: Sequence[_Heard]) -> None:
        live_refinement.begin_attempts(utterances=[one.utterance for one in batch])
        try:
            for language in sorted({one.language for one in batch}):
                alike = [one for one in batch if one.language == language]
                self._refine_alike(broker, models, language, alike)
        finally:
            broker.delete(*[_claim_key(one.utterance) for one in batch])

    def _refine_alike(
        self, broker: redis.Redis, models: Models, language: str, batch: Sequence[_Heard]
    ) -> None:
        """Utterances of one language; each by itself where it is to be detected."""
        phrases = phrases_for(None)
        options = TwoPassOptions(
            language=language or None,
            mixes_languages=not language,
            rescorer=Rescorer(phrases, models.lm) if phrases or models.lm else None,
        )
        heard: list[list[Segment]] = [[] for _ in batch]
        if not language or language in models.model.languages:
            heard = refine_windows(models.model, [one.window for one in batch], options)
        script = settings.SITE.chinese_script
        for one, segments in zip(batch, heard, strict=True):
            words = better_words(one.utterance, written(segments, script))
            stored = live_sessions.record_refined(
                utterance_id=one.utterance.id,
                text=join_words(words),
                words=[word.as_json() for word in words],
            )
            if stored is not None:
                event = live_sessions.final_event(stored)
                # Lost where the broker is away: the next `head` leads readers to what is stored.
                broker.publish(captions_channel(event.session), encode(event))


def window_of(utterance: LiveUtterance, samples_on_disk: int) -> Window | None:
    """The utterance's audio with some around it, up to its neighbours; None where it is not there
    (yet, or any more)."""
    start, end = ms_to_samples(utterance.start_ms), ms_to_samples(utterance.end_ms)
    pad = min(ms_to_samples(PAD_MS), (ms_to_samples(MAX_WINDOW_MS) - (end - start)) // 2)
    if pad < 0 or end > samples_on_disk:
        return None
    around = live_refinement.surroundings_of(utterance)
    first = max(start - pad, min(start, ms_to_samples(around.before_ms)))
    last = min(end + pad, samples_on_disk)
    if around.after_ms is not None:
        last = max(end, min(last, ms_to_samples(around.after_ms)))
    elif utterance.reason == EndpointReason.LENGTH:
        last = end  # cut while the speech went on
    try:
        with utterance.session.pcm_path.open("rb") as file:
            file.seek(first * BYTES_PER_SAMPLE)
            pcm = file.read((last - first) * BYTES_PER_SAMPLE)
    except FileNotFoundError:  # the session has just become a recording
        return None
    if len(pcm) != (last - first) * BYTES_PER_SAMPLE:
        return None
    span = WindowSpan(
        offset=0, start_sample=first, speech_start=start - first, speech_end=end - first
    )
    return Window(start_sample=first, samples=pcm16_to_float(pcm), spans=(span,))


def better_words(utterance: LiveUtterance, segments: Sequence[Segment]) -> list[Word]:
    """What to show instead of the live words; empty where those stand.

    They stand where the second pass was not sure, lost much of them, says all twice, or says the
    same: a comma more is not worth that a line changes under a reader's eyes, unless the live text
    has none at all.
    """
    words = [word for segment in segments for word in segment.words]
    text = join_words(words)
    is_unsure = any(segment.mark for segment in segments) or (
        guards.said_twice(text) is not None and guards.said_twice(utterance.text) is None
    )
    is_shorter = len(text) < len(utterance.text) * LEAST_SHARE
    is_same = spoken_units(text) == spoken_units(utterance.text)
    if is_unsure or is_shorter or (is_same and _has_marks(utterance.text) >= _has_marks(text)):
        return []
    return list(_within(words, utterance.start_ms, utterance.end_ms))


def _has_marks(text: str) -> bool:
    """Whether it is written with punctuation."""
    return any(not character.isalnum() and not character.isspace() for character in text)


def _within(words: Sequence[Word], start_ms: int, end_ms: int) -> Iterator[Word]:
    """`words` in order, none of them beyond the utterance."""
    for word in words:
        start = min(max(word.start_ms, start_ms), end_ms - 1)
        end = min(max(word.end_ms, start + 1), end_ms)
        yield replace(word, start_ms=start, end_ms=end)
        start_ms = start


def _samples_on_disk(broker: redis.Redis, utterance: LiveUtterance) -> int:
    key = session_key(str(utterance.session_id))
    acknowledged: Any = broker.hget(key, "acknowledged_sample")
    return max(int(acknowledged or 0), utterance.session.samples)


def _claim_key(utterance: LiveUtterance) -> str:
    """Broker: the worker that hears an utterance; expires."""
    return f"live:utterance:{utterance.id}:refiner"
