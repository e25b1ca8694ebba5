from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.errors import StreamError
from asr_engine.events import EndpointReason
from asr_engine.streaming.audio import MAX_HELD_S, AudioSpan, StreamAudio


def ramp(start: int, end: int) -> FloatSamples:
    """Samples that tell their own index."""
    return np.arange(start, end, dtype=np.float32)


def test_span_reads_what_it_was_given_and_zeros_after_it() -> None:
    span = AudioSpan(100)
    span.append(ramp(100, 200))
    assert span.read(150, 160).tolist() == ramp(150, 160).tolist()
    assert span.read(195, 205).tolist() == [195, 196, 197, 198, 199, 0, 0, 0, 0, 0]


def test_span_forgets_in_bounded_memory() -> None:
    span = AudioSpan(0)
    for second in range(600):
        start = second * SAMPLE_RATE
        span.append(ramp(start, start + SAMPLE_RATE))
        span.drop_before(start)
    assert span.held_samples <= 2 * SAMPLE_RATE
    assert span.read(span.end_sample - 3, span.end_sample).tolist() == [
        float(np.float32(span.end_sample - 3 + index)) for index in range(3)
    ]


def test_forgotten_samples_cannot_be_read() -> None:
    span = AudioSpan(0)
    span.append(ramp(0, 3 * SAMPLE_RATE))
    span.drop_before(2 * SAMPLE_RATE)
    with pytest.raises(StreamError):
        span.read(0, 10)


def test_held_samples_are_dropped_and_overlaps_cut() -> None:
    audio = StreamAudio(0)
    audio.accept(0, ramp(0, 100))
    audio.accept(20, ramp(20, 60))
    audio.accept(50, np.concatenate([np.full(50, -1, dtype=np.float32), ramp(100, 130)]))
    assert audio.end_sample == 130
    assert audio.span.read(0, 130).tolist() == ramp(0, 130).tolist()


def test_a_jump_begins_a_span_of_its_own() -> None:
    audio = StreamAudio(0)
    audio.accept(0, ramp(0, 100))
    audio.accept(500, ramp(500, 600))
    assert audio.span.closed_by is EndpointReason.GAP
    assert audio.samples_after(0) == 200
    assert audio.next_span().start_sample == 500


def test_audio_after_a_pause_begins_a_span_where_the_last_one_ended() -> None:
    audio = StreamAudio(0)
    audio.accept(0, ramp(0, 100))
    audio.close_span(EndpointReason.PAUSE)
    audio.accept(100, ramp(100, 200))
    assert audio.span.end_sample == 100
    assert audio.next_span().start_sample == 100


def test_nothing_follows_the_end() -> None:
    audio = StreamAudio(0)
    audio.end(EndpointReason.END_OF_AUDIO)
    with pytest.raises(StreamError):
        audio.accept(0, ramp(0, 10))


def test_more_than_a_stream_may_hold_is_refused() -> None:
    audio = StreamAudio(0)
    audio.accept(0, np.zeros(MAX_HELD_S * SAMPLE_RATE, dtype=np.float32))
    with pytest.raises(StreamError):
        audio.accept(audio.end_sample, np.zeros(1, dtype=np.float32))


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 120)), max_size=30))
def test_any_packets_leave_spans_in_order_with_the_right_samples(
    packets: list[tuple[int, int]],
) -> None:
    audio = StreamAudio(0)
    for start, length in packets:
        audio.accept(start, ramp(start, start + length))
    last_end, spans = 0, 0
    while True:
        span = audio.span
        assert span.start_sample >= last_end
        assert span.read(span.start_sample, span.end_sample).tolist() == (
            ramp(span.start_sample, span.end_sample).tolist()
        )
        last_end = span.end_sample
        spans += 1
        if span.closed_by is None:
            break
        audio.next_span()
    assert spans <= len(packets) + 1
