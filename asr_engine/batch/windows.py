"""Speech in a recording of any length, cut in silence into windows that a model takes whole.

Memory is bounded: the last `TAPE_MS` of audio and one window are held.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
    on each side, shared where two spans are near.
    """

    threshold: float = 0.5
    release: float = 0.35
    min_silence_ms: int = 160
    min_speech_ms: int = 64
    pad_ms: int = 400


@dataclass(frozen=True, slots=True)
class Span:
    """[start, end) in samples of the recording; speech was heard in [onset, quiet)."""

    start: int
    end: int
    onset: int
    quiet: int


def find_windows(
    blocks: Iterable[FloatSamples],
    *,
    finder: SpeechFinder,
    first_sample: int = 0,
    from_sample: int = 0,
    rules: SpeechRules | None = None,
) -> Iterator[Window]:
    """Windows of at most 30 s, in order, that hold all speech from `from_sample` on.

    `blocks` are successive float32 [n] at 16 kHz that begin at `first_sample`, a multiple of the
    finder's window. Silence between a window's spans is left out.
    """
    rules = rules or SpeechRules()
    tape = _Tape(first_sample)
    spans = find_spans(
        finder.speech_probabilities(tape.record(blocks)),
        window_samples=finder.window_samples,
        first_sample=first_sample,
        from_sample=from_sample,
        rules=rules,
    )
    limit = ms_to_samples(MAX_WINDOW_MS)
    pieces: list[tuple[Span, FloatSamples]] = []
    for span in spans:
        samples = tape.cut(span)
        if pieces and sum(len(piece) for _, piece in pieces) + len(samples) > limit:
            yield _join(pieces)
            pieces = []
        if len(samples):
            pieces.append((span, samples))
    if pieces:
        yield _join(pieces)


def resume_from(resume_sample: int, *, window_samples: int) -> int:
    """Where to start decoding so that work goes on at `resume_sample` as if never interrupted.

    It leaves room to warm up and keeps the finder's windows on the same grid.
    """
    start = max(0, resume_sample - WARM_UP_SAMPLES)
    return start - start % window_samples


def find_spans(
    probabilities: Iterable[float],
    *,
    window_samples: int,
    rules: SpeechRules,
    first_sample: int = 0,
    from_sample: int = 0,
) -> Iterator[Span]:
    """Padded spans of speech, ascending, without overlap, at most 30 s each.

    Speech without a pause is cut where it is least probable in its last ten seconds. A span's end
    may lie past the end of the audio by less than a window and a padding.
    """
    limit, pad = ms_to_samples(MAX_WINDOW_MS), ms_to_samples(rules.pad_ms)
    floor = from_sample  # no span begins before this
    onset = quiet = -1  # first sample of the open span, and of the silence at its end
    heard: list[float] = []  # probabilities since the onset
    position = first_sample
    for position, probability in _positions(probabilities, first_sample, window_samples):
        if position < from_sample:
            continue
        if onset < 0:
            if probability >= rules.threshold:
                onset, quiet, heard = position, -1, [probability]
            continue
        if probability >= rules.threshold and quiet >= 0:
            if position - quiet >= ms_to_samples(rules.min_silence_ms):
                middle = (quiet + position) // 2
                if _is_speech(onset, quiet, rules):
                    yield Span(max(floor, onset - pad), middle, onset, quiet)
                    floor = middle
                onset, heard = position, []
            quiet = -1
        elif probability < rules.release and quiet < 0:
            quiet = position
        heard.append(probability)
        end = position + window_samples
        start = max(floor, onset - pad)
        if quiet >= 0 and end - quiet >= 2 * pad:
            if _is_speech(onset, quiet, rules):
                yield Span(start, quiet + pad, onset, quiet)
                floor = quiet + pad
            onset = -1
        elif end - start > limit - window_samples:
            kept = _weakest(heard, window_samples)
            cut = onset + kept * window_samples
            yield Span(start, cut, onset, cut)
            floor = onset = cut
            heard = heard[kept:]
            quiet = quiet if quiet >= cut else -1
    end = position + window_samples
    quiet = end if quiet < 0 else quiet
    if onset >= 0 and _is_speech(onset, quiet, rules):
        yield Span(max(floor, onset - pad), min(end, quiet + pad), onset, quiet)


def _positions(
    probabilities: Iterable[float], first_sample: int, window_samples: int
) -> Iterator[tuple[int, float]]:
    for index, probability in enumerate(probabilities):
        yield first_sample + index * window_samples, probability


def _is_speech(onset: int, end: int, rules: SpeechRules) -> bool:
    return end - onset >= ms_to_samples(rules.min_speech_ms)


def _weakest(heard: list[float], window_samples: int) -> int:
    """Index of the quietest moment (over three windows) in the last ten seconds of a span."""
    first = max(1, len(heard) - 10 * SAMPLE_RATE // window_samples)
    smooth = np.convolve(np.array(heard), np.ones(3) / 3, mode="same")
    return first + int(np.argmin(smooth[first:-1])) if len(heard) > first + 1 else first


def _join(pieces: list[tuple[Span, FloatSamples]]) -> Window:
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
    )


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
