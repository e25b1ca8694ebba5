"""Speech in a recording of any length, cut in silence into windows that a model takes whole.

Memory is bounded: the last `TAPE_MS` of audio and one window are held, of each channel that is
heard on its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

import numpy as np

from asr_engine.audio import SAMPLE_RATE, FloatSamples, ms_to_samples
from asr_engine.ports import SpeechFinder, Window, WindowSpan

MAX_WINDOW_MS: Final = 30_000
TAPE_MS: Final = 45_000
"""The longest span, the silence that closes it, and what a SpeechFinder reads ahead."""
WARM_UP_SAMPLES: Final = SAMPLE_RATE
"""Audio heard before the place where work resumes, so that the finder knows its surroundings."""


@dataclass(frozen=True, slots=True)
class SpeechRules:
    """When probabilities begin and end a span of speech.

    A span begins at `threshold` and ends where the probability stays below `release` for
    `min_silence_ms`; one shorter than `min_speech_ms` is a click. Up to `pad_ms` of silence is kept
    on each side, shared where two spans are near. Spans are joined to windows of at most
    `max_window_ms`; a longer one is a window by itself.

    With `max_pause_ms`, a pause so long ends a window as well, unless less than `min_apart_ms` of
    speech is on one side of it: that goes with its nearer neighbour.
    """

    threshold: float = 0.5
    release: float = 0.35
    min_silence_ms: int = 160
    min_speech_ms: int = 64
    pad_ms: int = 400
    max_window_ms: int = MAX_WINDOW_MS
    max_pause_ms: int | None = None
    min_apart_ms: int = 1_500


@dataclass(frozen=True, slots=True)
class Span:
    """[start, end) in samples of the recording; speech was heard in [onset, quiet)."""

    start: int
    end: int
    onset: int
    quiet: int


_Piece = tuple[Span, FloatSamples]


def find_windows(
    blocks: Iterable[FloatSamples],
    *,
    finder: SpeechFinder,
    channels: Sequence[str] = (),
    first_sample: int = 0,
    from_samples: Sequence[int] = (),
    rules: SpeechRules | None = None,
) -> Iterator[Window]:
    """Windows of at most 30 s that hold all speech from `from_samples` on.

    `blocks` are successive float32 [n] at 16 kHz that begin at `first_sample`, a multiple of the
    finder's window. Silence between a window's spans is left out.

    With `channels`, blocks are [channels, n], and each channel is cut into windows of its own, from
    its own place of `from_samples` on. As soon as one of them fills a window, what the others hold
    is a window too: windows come in the order of time but for speech that is going on there.
    """
    rules = rules or SpeechRules()
    labels: Sequence[str | None] = channels or (None,)
    splitter = _Splitter(iter(blocks), len(labels))
    lanes = [
        _Lane(
            label,
            splitter.channel(number),
            finder=finder,
            first_sample=first_sample,
            from_sample=from_samples[number] if from_samples else 0,
            rules=rules,
        )
        for number, label in enumerate(labels)
    ]
    # All lanes hear the same length of audio, so that none reads ahead of another.
    while sum(lane.advance() for lane in lanes):
        for lane in lanes:
            if lane.is_full:
                yield from _flush(lanes)
            lane.hold()
    yield from _flush(lanes)


def take_group(windows: Iterator[Window], size: int) -> list[Window]:
    """The next `size` windows, and those that follow until work can resume behind them.

    Fewer than `size` are the last.
    """
    group = list(islice(windows, size))
    while group and not group[-1].resume_samples:
        group.append(next(windows))
    return group


def resume_from(resume_samples: Sequence[int], *, window_samples: int) -> int:
    """Where to start decoding so that work goes on at `resume_samples` as if never interrupted.

    It leaves room to warm up and keeps the finder's windows on the same grid.
    """
    start = max(0, min(resume_samples, default=0) - WARM_UP_SAMPLES)
    return start - start % window_samples


class SpanFinder:
    """Padded spans of speech, ascending, without overlap, at most 30 s each.

    It hears one probability after another, the first of them at `first_sample`. Speech without a
    pause is cut where it is least probable in its last ten seconds. A span's end may lie past the
    end of the audio by less than a window and a padding.
    """

    def __init__(
        self,
        *,
        window_samples: int,
        rules: SpeechRules,
        first_sample: int = 0,
        from_sample: int = 0,
    ) -> None:
        self._window_samples = window_samples
        self._rules = rules
        self._from_sample = from_sample
        self._pad = ms_to_samples(rules.pad_ms)
        self._floor = from_sample  # no span begins before this
        self._position = first_sample
        # First sample of the open span, and of the silence at its end.
        self._onset = self._quiet = -1
        self._heard: list[float] = []  # probabilities since the onset

    @property
    def next_sample(self) -> int:
        """Where the open span begins; without one, what the next cannot begin before."""
        onset = self._position if self._onset < 0 else self._onset
        return max(self._floor, onset - self._pad)

    def hear(self, probability: float) -> Span | None:
        """One more of the finder's windows; the span that it completes."""
        position = self._position
        self._position += self._window_samples
        if position < self._from_sample:
            return None
        if self._onset < 0:
            if probability >= self._rules.threshold:
                self._open(position)
                self._heard = [probability]
            return None
        ended = None
        if probability >= self._rules.threshold and self._quiet >= 0:
            if position - self._quiet >= ms_to_samples(self._rules.min_silence_ms):
                ended = self._close((self._quiet + position) // 2)
                self._open(position)
            self._quiet = -1
        elif probability < self._rules.release and self._quiet < 0:
            self._quiet = position
        self._heard.append(probability)
        if self._quiet >= 0 and self._position - self._quiet >= 2 * self._pad:
            ended = self._close(self._quiet + self._pad)
            self._onset = -1
        elif (
            self._position - self.next_sample > ms_to_samples(MAX_WINDOW_MS) - self._window_samples
        ):
            ended = self._cut()
        return ended

    def end(self) -> Span | None:
        """The span that the end of the audio completes."""
        if self._onset < 0:
            return None
        self._quiet = self._position if self._quiet < 0 else self._quiet
        return self._close(min(self._position, self._quiet + self._pad))

    def _open(self, position: int) -> None:
        self._onset, self._quiet, self._heard = position, -1, []

    def _close(self, end: int) -> Span | None:
        if not _is_speech(self._onset, self._quiet, self._rules):
            return None
        span = Span(self.next_sample, end, self._onset, self._quiet)
        self._floor = end
        return span

    def _cut(self) -> Span:
        """End the open span in its weakest moment, where the next one begins."""
        kept = _weakest(self._heard, self._window_samples)
        cut = self._onset + kept * self._window_samples
        span = Span(self.next_sample, cut, self._onset, cut)
        self._floor = self._onset = cut
        self._heard = self._heard[kept:]
        self._quiet = self._quiet if self._quiet >= cut else -1
        return span


def _is_speech(onset: int, end: int, rules: SpeechRules) -> bool:
    return end - onset >= ms_to_samples(rules.min_speech_ms)


def _weakest(heard: list[float], window_samples: int) -> int:
    """Index of the quietest moment (over three windows) in the last ten seconds of a span."""
    first = max(1, len(heard) - 10 * SAMPLE_RATE // window_samples)
    smooth = np.convolve(np.array(heard), np.ones(3) / 3, mode="same")
    return first + int(np.argmin(smooth[first:-1])) if len(heard) > first + 1 else first


def _flush(lanes: Sequence[_Lane]) -> Iterator[Window]:
    """What all lanes hold, in the order of time. Work can resume behind the last of them."""
    windows = sorted(
        (window for lane in lanes for window in lane.flush()), key=lambda w: w.start_sample
    )
    yield from windows[:-1]
    for window in windows[-1:]:
        yield replace(window, resume_samples=tuple(lane.resume_sample for lane in lanes))


def _join(label: str | None, pieces: list[_Piece]) -> Window:
    spans = []
    offset = 0
    for span, samples in pieces:
        to_window = offset - span.start
        spans.append(WindowSpan(offset, span.start, span.onset + to_window, span.quiet + to_window))
        offset += len(samples)
    return Window(
        start_sample=pieces[0][0].start,
        samples=np.concatenate([samples for _, samples in pieces]),
        spans=tuple(spans),
        channel=label,
    )


class _Splitter:
    """Blocks [n] or [channels, n], read once and shared out by channel."""

    def __init__(self, blocks: Iterator[FloatSamples], channels: int) -> None:
        self._blocks = blocks
        self._waiting: list[deque[FloatSamples]] = [deque() for _ in range(channels)]

    def channel(self, number: int) -> Iterator[FloatSamples]:
        waiting = self._waiting[number]
        while True:
            if not waiting:
                block = next(self._blocks, None)
                if block is None:
                    return
                for queue, samples in zip(self._waiting, np.atleast_2d(block), strict=True):
                    queue.append(samples)
            yield waiting.popleft()


class _Lane:
    """One channel: its spans, and those that wait for their window to be full."""

    def __init__(
        self,
        label: str | None,
        blocks: Iterator[FloatSamples],
        *,
        finder: SpeechFinder,
        first_sample: int,
        from_sample: int,
        rules: SpeechRules,
    ) -> None:
        self._label = label
        self._rules = rules
        self._longest_samples = ms_to_samples(rules.max_window_ms)
        self._tape = _Tape(first_sample)
        self._probabilities = finder.speech_probabilities(self._tape.record(blocks))
        self._spans = SpanFinder(
            window_samples=finder.window_samples,
            rules=rules,
            first_sample=first_sample,
            from_sample=from_sample,
        )
        self._held: list[_Piece] = []
        # A short stretch behind a pause, until what follows tells whether it is nearer.
        self._waiting: list[_Piece] = []
        self._new: list[_Piece] = []
        self._is_ended = False

    @property
    def is_full(self) -> bool:
        """The newest span does not fit into the window that is held, or does not belong there."""
        if not self._new or not self._held:
            return False
        return not self._fit(self._held, self._new) or (
            self._is_behind_pause and not (self._is_short(self._held) or self._is_short(self._new))
        )

    @property
    def resume_sample(self) -> int:
        """Where this channel goes on once all that it held has been taken."""
        return self._new[0][0].start if self._new else self._spans.next_sample

    def advance(self) -> bool:
        """Hear one more of the finder's windows; False where there is none."""
        if self._is_ended:
            return False
        probability = next(self._probabilities, None)
        self._is_ended = probability is None
        span = self._spans.end() if probability is None else self._spans.hear(probability)
        if span is not None:
            samples = self._tape.cut(span)
            if len(samples):
                self._receive([(span, samples)])
        return True

    def hold(self) -> None:
        """Put the newest span, if there is one, into the window that is held."""
        if self._held and self._is_behind_pause and self._is_short(self._new):
            self._waiting = self._new
        else:
            self._held += self._new
        self._new = []

    def flush(self) -> Iterator[Window]:
        """The window that is held, if there is one."""
        pieces = self._held + self._waiting
        if pieces:
            yield _join(self._label, pieces)
        self._held, self._waiting = [], []

    def _receive(self, new: list[_Piece]) -> None:
        if self._waiting:
            is_nearer = _pause(self._waiting, new) < _pause(self._held, self._waiting)
            if is_nearer and self._fit(self._waiting, new):
                new = self._waiting + new
            else:
                self._held += self._waiting
            self._waiting = []
        self._new = new

    def _fit(self, before: list[_Piece], after: list[_Piece]) -> bool:
        return sum(len(samples) for _, samples in before + after) <= self._longest_samples

    @property
    def _is_behind_pause(self) -> bool:
        longest_ms = self._rules.max_pause_ms
        if longest_ms is None or not self._new:
            return False
        return _pause(self._held, self._new) >= ms_to_samples(longest_ms)

    def _is_short(self, pieces: list[_Piece]) -> bool:
        speech = sum(span.quiet - span.onset for span, _ in pieces)
        return speech < ms_to_samples(self._rules.min_apart_ms)


def _pause(before: list[_Piece], after: list[_Piece]) -> int:
    """Samples without speech between the two."""
    return after[0][0].onset - before[-1][0].quiet


class _Tape:
    """The last TAPE_MS of what has been read, addressed by sample of the recording."""

    def __init__(self, first_sample: int) -> None:
        self._blocks: deque[FloatSamples] = deque()
        self._start = self._end = first_sample

    def record(self, blocks: Iterable[FloatSamples]) -> Iterator[FloatSamples]:
        """Pass `blocks` on, remembering them."""
        for block in blocks:
            self._blocks.append(block)
            self._end += len(block)
            while self._end - self._start - len(self._blocks[0]) >= ms_to_samples(TAPE_MS):
                self._start += len(self._blocks.popleft())
            yield block

    def cut(self, span: Span) -> FloatSamples:
        """A copy of what `span` holds, short where the audio ends. It must still be on the tape."""
        if span.start < self._start:
            raise ValueError("the finder read too far ahead")
        held = np.concatenate(self._blocks) if self._blocks else np.zeros(0, np.float32)
        return held[span.start - self._start : span.end - self._start].copy()
