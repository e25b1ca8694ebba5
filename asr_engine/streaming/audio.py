"""The audio that a stream holds: spans without holes, however the packets came.

Owns re-ordering rules (what is held is dropped, what overlaps is cut, a jump is a gap). Knows no
model and no utterance.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.errors import StreamError
from asr_engine.events import EndpointReason

MAX_HELD_S = 150
"""A backlog of 90 s, an utterance of 30 s that may be heard again, and room between them."""


class AudioSpan:
    """Contiguous samples [start_sample, end_sample) of which the heard head may be dropped.

    `closed_by` says that no sample follows `end_sample`, and why.
    """

    def __init__(self, start_sample: int) -> None:
        self.start_sample = start_sample
        self.closed_by: EndpointReason | None = None
        self._data = np.empty(2 * SAMPLE_RATE, dtype=np.float32)
        self._held_from = start_sample
        self._used = 0

    @property
    def end_sample(self) -> int:
        return self._held_from + self._used

    @property
    def held_samples(self) -> int:
        return self._used

    def append(self, samples: FloatSamples) -> None:
        needed = self._used + len(samples)
        if needed > len(self._data):
            grown = np.empty(max(needed, 2 * len(self._data)), dtype=np.float32)
            grown[: self._used] = self._data[: self._used]
            self._data = grown
        self._data[self._used : needed] = samples
        self._used = needed

    def read(self, start_sample: int, end_sample: int) -> FloatSamples:
        """A copy of [start_sample, end_sample), with zeros past the end.

        Raises StreamError for samples that were dropped.
        """
        if start_sample < self._held_from:
            raise StreamError("these samples were dropped already")
        begin, end = start_sample - self._held_from, end_sample - self._held_from
        if end <= self._used:
            return self._data[begin:end].copy()
        out = np.zeros(end - begin, dtype=np.float32)
        held = self._data[begin : self._used]
        out[: len(held)] = held
        return out

    def drop_before(self, sample: int) -> None:
        """Forget samples before `sample`; moves memory only once a second of them came together."""
        count = min(sample - self._held_from, self._used)
        if count < SAMPLE_RATE:
            return
        rest = self._used - count
        self._data[:rest] = self._data[count : self._used].copy()
        self._held_from += count
        self._used = rest


class StreamAudio:
    """The spans of one stream: at least one; only the last may grow."""

    def __init__(self, first_sample: int) -> None:
        self._spans = deque([AudioSpan(first_sample)])
        self._is_over = False

    @property
    def span(self) -> AudioSpan:
        """The span being heard."""
        return self._spans[0]

    @property
    def end_sample(self) -> int:
        return self._spans[-1].end_sample

    @property
    def is_last_span(self) -> bool:
        """Nothing will follow the span being heard."""
        return self._is_over and len(self._spans) == 1

    @property
    def held_samples(self) -> int:
        return sum(span.held_samples for span in self._spans)

    def samples_after(self, position: int) -> int:
        """Samples held of the span being heard from `position` on, and of those after it."""
        first = self._spans[0]
        count = max(0, first.end_sample - max(first.start_sample, position))
        if len(self._spans) > 1:  # only a stream that had gaps, and is behind
            count += sum(span.held_samples for span in self._spans) - first.held_samples
        return count

    def accept(self, first_sample: int, samples: FloatSamples) -> None:
        """Take a packet of any size. Raises StreamError beyond MAX_HELD_S or after the end."""
        end = self.end_sample
        if self._is_over:
            raise StreamError("audio after the end of the stream")
        if first_sample + len(samples) <= end:
            return
        if self.held_samples + len(samples) > MAX_HELD_S * SAMPLE_RATE:
            raise StreamError("more audio than a stream may hold")
        if first_sample < end:
            samples = samples[end - first_sample :]
        if first_sample > end:
            self.close_span(EndpointReason.GAP)
            self._spans.append(AudioSpan(first_sample))
        elif self._spans[-1].closed_by is not None:
            self._spans.append(AudioSpan(end))
        self._spans[-1].append(samples)

    def close_span(self, reason: EndpointReason) -> None:
        """No sample follows the last one without a break; the first reason given counts."""
        last = self._spans[-1]
        if last.closed_by is None:
            last.closed_by = reason

    def end(self, reason: EndpointReason) -> None:
        """No sample follows at all."""
        self.close_span(reason)
        self._is_over = True

    def next_span(self) -> AudioSpan:
        """Leave the span being heard, which must be closed, and return the one after it."""
        left = self._spans.popleft()
        if not self._spans:
            self._spans.append(AudioSpan(left.end_sample))
        return self._spans[0]
