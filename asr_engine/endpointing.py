"""Endpoint rules as data, and one pure decision.

Says where utterances begin and end from the speech probabilities of consecutive windows. Knows no
model, no text and no clock but the sample index.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from asr_engine.audio import ms_to_samples
from asr_engine.events import EndpointReason


@dataclass(frozen=True, slots=True)
class EndpointRules:
    """When an utterance begins and ends.

    Speech begins at `speech_threshold` and ends below `silence_threshold` (hysteresis); an
    utterance opens after `min_speech_ms` of it and closes after `silence_ms` without. Its audio
    begins `pre_roll_ms` before its speech and lasts at most `max_utterance_ms`: then it is cut at
    the best pause of the last `cut_search_ms` (0: at once).
    """

    speech_threshold: float = 0.5
    silence_threshold: float = 0.35
    min_speech_ms: int = 90
    silence_ms: int = 600
    max_utterance_ms: int = 30_000
    cut_search_ms: int = 10_000
    pre_roll_ms: int = 300

    def __post_init__(self) -> None:
        if not 0 < self.silence_threshold <= self.speech_threshold < 1:
            raise ValueError("thresholds must satisfy 0 < silence <= speech < 1")
        if self.pre_roll_ms < 300:
            raise ValueError("a pre-roll below 300 ms loses first syllables")
        if self.silence_ms < self.pre_roll_ms:
            raise ValueError("a pre-roll longer than the silence would repeat the last word")
        if not 0 <= self.cut_search_ms < self.max_utterance_ms:
            raise ValueError("cut_search_ms must be shorter than max_utterance_ms")


@dataclass(frozen=True, slots=True)
class HeardWindow:
    """The speech probability of the samples [start_sample, end_sample)."""

    start_sample: int
    end_sample: int
    probability: float


@dataclass(frozen=True, slots=True)
class Pause:
    """A place where an utterance may be cut: the longer its silence, the better."""

    sample: int
    silent_samples: int
    probability: float

    def is_better_than(self, other: Pause | None) -> bool:
        if other is None:
            return True
        return (self.silent_samples, -self.probability) > (
            other.silent_samples,
            -other.probability,
        )


@dataclass(frozen=True, slots=True)
class Activity:
    """What one stream's windows have shown so far.

    `start_sample` is where the audio of the open (or candidate) utterance begins, pre-roll
    included; `speech_start` and `speech_end` are the speech itself. `is_open` says that an
    utterance is open, `is_speaking` that the last window counted as speech.
    """

    is_open: bool = False
    is_speaking: bool = False
    start_sample: int = 0
    speech_start: int = 0
    speech_end: int = 0
    best_pause: Pause | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """Speech began at `speech_start`; the utterance's audio begins at `start_sample` (may be
    before the audio that there is: the caller cuts it)."""

    start_sample: int
    speech_start: int


@dataclass(frozen=True, slots=True)
class Closed:
    """The utterance ended, as decided at `decided_sample`.

    `cut_sample` is set when speech goes on (reason LENGTH): words before it belong to this
    utterance, and another is already open from there.
    """

    reason: EndpointReason
    decided_sample: int
    speech_end: int
    cut_sample: int | None = None


Decision = Opened | Closed | None


def decide(
    activity: Activity, window: HeardWindow, rules: EndpointRules
) -> tuple[Activity, Decision]:
    """The next state and, where this window decides something, the decision.

    Windows must be consecutive. Pure: the same windows give the same decisions however the audio
    came.
    """
    threshold = rules.silence_threshold if activity.is_speaking else rules.speech_threshold
    is_speech = window.probability >= threshold
    if not activity.is_open:
        return _decide_between(activity, window, rules, is_speech=is_speech)
    speech_end = window.end_sample if is_speech else activity.speech_end
    # Not `replace`, which takes longer than all the rest of a window's book-keeping.
    activity = Activity(
        is_open=True,
        is_speaking=is_speech,
        start_sample=activity.start_sample,
        speech_start=activity.speech_start,
        speech_end=speech_end,
        best_pause=activity.best_pause,
    )
    if window.end_sample - speech_end >= ms_to_samples(rules.silence_ms):
        return Activity(), Closed(EndpointReason.SILENCE, window.end_sample, speech_end)
    limit = activity.start_sample + ms_to_samples(rules.max_utterance_ms)
    if window.end_sample + (window.end_sample - window.start_sample) > limit:
        return _cut(activity, window)
    if window.end_sample > limit - ms_to_samples(rules.cut_search_ms):
        pause = _pause_at(activity, window)
        if pause.is_better_than(activity.best_pause):
            activity = replace(activity, best_pause=pause)
    return activity, None


def _decide_between(
    activity: Activity, window: HeardWindow, rules: EndpointRules, *, is_speech: bool
) -> tuple[Activity, Decision]:
    if not is_speech:
        return Activity(), None
    begin = activity.speech_start if activity.is_speaking else window.start_sample
    start_sample = begin - ms_to_samples(rules.pre_roll_ms)
    is_open = window.end_sample - begin >= ms_to_samples(rules.min_speech_ms)
    state = Activity(
        is_open=is_open,
        is_speaking=True,
        start_sample=start_sample,
        speech_start=begin,
        speech_end=window.end_sample,
    )
    return state, Opened(start_sample, begin) if is_open else None


def _pause_at(activity: Activity, window: HeardWindow) -> Pause:
    if activity.is_speaking:
        return Pause(window.start_sample, 0, window.probability)
    silent = window.end_sample - activity.speech_end
    return Pause(activity.speech_end + silent // 2, silent, window.probability)


def _cut(activity: Activity, window: HeardWindow) -> tuple[Activity, Decision]:
    cut = activity.best_pause.sample if activity.best_pause else window.end_sample
    closed = Closed(EndpointReason.LENGTH, window.end_sample, min(activity.speech_end, cut), cut)
    if not activity.is_speaking and activity.speech_end <= cut:
        return Activity(), closed
    rest = Activity(
        is_open=True,
        is_speaking=activity.is_speaking,
        start_sample=cut,
        speech_start=cut,
        speech_end=max(activity.speech_end, cut),
    )
    return rest, closed
