"""Windows hold all speech, are cut in silence, are at most 30 s, and cost bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.batch.windows import (
    MAX_WINDOW_MS,
    Span,
    SpanFinder,
    SpeechRules,
    find_windows,
    resume_from,
    take_group,
)
from asr_engine.ports import Window

WINDOW = 512
RULES = SpeechRules()
APART = SpeechRules(max_window_ms=10_000, max_pause_ms=300)
LIMIT = MAX_WINDOW_MS * SAMPLE_RATE // 1000
PAD = 6400


class LevelFinder:
    """Speech is what is louder than nothing: its level is its probability."""

    window_samples = WINDOW

    def speech_probabilities(self, samples: Iterable[FloatSamples]) -> Iterator[float]:
        held = np.zeros(0, np.float32)
        for block in samples:
            held = np.concatenate((held, block))
            while len(held) >= WINDOW:
                yield float(held[:WINDOW].max())
                held = held[WINDOW:]
        if len(held):
            yield float(held.max())


def spans(*runs: tuple[int, float]) -> list[Span]:
    """Spans of (windows, probability) runs."""
    finder = SpanFinder(window_samples=WINDOW, rules=RULES)
    found = [finder.hear(value) for count, value in runs for _ in range(count)]
    return [span for span in (*found, finder.end()) if span is not None]


def blocks(samples: FloatSamples) -> Iterator[FloatSamples]:
    """Seconds of [n] or [channels, n]."""
    for start in range(0, samples.shape[-1], SAMPLE_RATE):
        yield samples[..., start : start + SAMPLE_RATE]


def sound(*runs: tuple[float, float]) -> FloatSamples:
    """(seconds, level) runs as samples."""
    return np.concatenate(
        [np.full(round(seconds * SAMPLE_RATE), level, np.float32) for seconds, level in runs]
    )


def test_silence_has_no_speech() -> None:
    assert spans((1000, 0.1)) == []


def test_a_click_is_no_speech() -> None:
    assert spans((100, 0.0), (1, 0.99), (100, 0.0)) == []


def test_a_span_is_padded_on_both_sides() -> None:
    (span,) = spans((50, 0.0), (30, 0.9), (50, 0.0))
    assert (span.onset, span.quiet) == (50 * WINDOW, 80 * WINDOW)
    assert (span.start, span.end) == (50 * WINDOW - PAD, 80 * WINDOW + PAD)


def test_near_spans_share_the_silence_between_them() -> None:
    first, second = spans((30, 0.9), (10, 0.0), (30, 0.9), (50, 0.0))
    assert first.end == second.start == 35 * WINDOW


def test_a_hesitation_does_not_end_a_span() -> None:
    assert len(spans((30, 0.9), (3, 0.0), (30, 0.9), (50, 0.0))) == 1
    assert len(spans((30, 0.9), (40, 0.4), (30, 0.9), (50, 0.0))) == 1


def test_speech_without_a_pause_is_cut_where_it_is_weakest() -> None:
    first, second = spans((800, 0.9), (3, 0.55), (800, 0.9), (50, 0.0))[:2]
    assert first.end == second.start
    assert 800 * WINDOW <= first.end <= 803 * WINDOW


@given(st.lists(st.sampled_from([0.0, 0.2, 0.4, 0.6, 0.95]), max_size=40), st.integers(1, 120))
def test_spans_are_ordered_apart_and_short_enough(levels: list[float], repeat: int) -> None:
    found = spans(*[(repeat, level) for level in levels])
    for span in found:
        assert 0 <= span.start < span.end
        assert span.end - span.start <= LIMIT
        assert span.start <= span.onset < span.quiet <= span.end
    for before, after in pairwise(found):
        assert before.end <= after.start


@given(st.lists(st.tuples(st.integers(1, 400), st.sampled_from([0.0, 0.95])), max_size=12))
def test_all_speech_lies_in_some_span(runs: list[tuple[int, float]]) -> None:
    found = spans(*runs)
    position = 0
    for count, level in runs:
        if level > RULES.threshold and count >= 2:
            middle = (position + count // 2) * WINDOW
            assert any(span.start <= middle < span.end for span in found)
        position += count


def test_windows_join_spans_and_leave_long_silence_out() -> None:
    samples = sound((1, 0), (5, 0.9), (60, 0), (5, 0.8), (1, 0))
    (window,) = find_windows(blocks(samples), finder=LevelFinder())
    assert len(window.spans) == 2
    assert 10 * SAMPLE_RATE < len(window.samples) < 12 * SAMPLE_RATE
    for span, level in zip(window.spans, (0.9, 0.8), strict=True):
        middle = (span.speech_start + span.speech_end) // 2
        assert window.samples[middle] == pytest.approx(level)
        place = span.start_sample + middle - span.offset
        assert samples[place] == pytest.approx(level)
    assert abs(window.end_sample - 71.4 * SAMPLE_RATE) < WINDOW


def test_windows_are_at_most_thirty_seconds() -> None:
    samples = sound(*[(7.0, 0.9), (0.6, 0.0)] * 20, (100, 0.9))
    windows = list(find_windows(blocks(samples), finder=LevelFinder()))
    assert all(len(window.samples) <= LIMIT for window in windows)
    assert sum(len(window.samples) for window in windows) >= len(samples) - SAMPLE_RATE
    assert all(a.end_sample <= b.start_sample for a, b in pairwise(windows))


@pytest.mark.parametrize(
    ("seconds", "windows"),
    [
        pytest.param([3, -0.5, 2], [1, 1], id="a pause parts"),
        pytest.param([3, -2, 2, -5, 2], [1, 1, 1], id="long pauses part"),
        pytest.param([3, -0.2, 2], [2], id="a hesitation does not"),
        pytest.param([6, -0.2, 6], [1, 1], id="what does not fit is apart"),
        pytest.param([0.5, -0.8, 3], [2], id="short at the beginning"),
        pytest.param([3, -0.8, 0.5], [2], id="short at the end"),
        pytest.param([3, -0.5, 0.5, -1.5, 3], [2, 1], id="short and nearer to what was before"),
        pytest.param([3, -1.5, 0.5, -0.5, 3], [1, 2], id="short and nearer to what follows"),
        pytest.param([3, -1.5, 0.5, -0.5, 9], [2, 1], id="nearer to what it does not fit"),
        pytest.param([3, -1.5, 0.5, -0.5, 0.5, -0.7, 3], [1, 3], id="short ones together"),
    ],
)
def test_where_asked_a_pause_ends_a_window_but_leaves_none_short(
    seconds: list[float], windows: list[int]
) -> None:
    samples = sound((1, 0), *[(abs(one), 0.9 * (one > 0)) for one in seconds], (1, 0))
    found = list(find_windows(blocks(samples), finder=LevelFinder(), rules=APART))
    assert [len(window.spans) for window in found] == windows
    assert all(a.end_sample <= b.start_sample for a, b in pairwise(found))


@pytest.mark.parametrize("rules", [RULES, APART], ids=["long", "apart"])
@pytest.mark.parametrize("seconds", [1.0, 31.0, 70.0])
def test_work_resumes_as_if_never_interrupted(seconds: float, rules: SpeechRules) -> None:
    samples = sound(*[(seconds, 0.9), (0.5, 0.0), (9.0, 0.7), (2.5, 0.0)] * 3)
    whole = list(find_windows(blocks(samples), finder=LevelFinder(), rules=rules))
    for done in range(1, len(whole)):
        resume = whole[done - 1].resume_samples
        assert resume >= (whole[done - 1].end_sample,)
        first = resume_from(resume, window_samples=WINDOW)
        assert first % WINDOW == 0
        rest = list(
            find_windows(
                blocks(samples[first:]),
                finder=LevelFinder(),
                first_sample=first,
                from_samples=resume,
                rules=rules,
            )
        )
        assert [(w.start_sample, w.end_sample) for w in rest] == [
            (w.start_sample, w.end_sample) for w in whole[done:]
        ]
        assert all(
            np.array_equal(a.samples, b.samples) for a, b in zip(rest, whole[done:], strict=True)
        )


def test_a_finder_that_reads_the_whole_recording_is_noticed() -> None:
    class Greedy(LevelFinder):
        def speech_probabilities(self, samples: Iterable[FloatSamples]) -> Iterator[float]:
            yield from super().speech_probabilities(list(samples))

    samples = sound((5, 0.9), (200, 0.0))
    with pytest.raises(ValueError, match="too far ahead"):
        list(find_windows(blocks(samples), finder=Greedy()))


def call(*turns: tuple[float, float, float]) -> FloatSamples:
    """(seconds, level left, level right) turns as samples [2, n]."""
    left = sound(*[(seconds, level) for seconds, level, _ in turns])
    right = sound(*[(seconds, level) for seconds, _, level in turns])
    return np.stack((left, right))


CALL = call(
    *[(6.0, 0.9, 0.0), (0.8, 0.0, 0.0), (5.0, 0.0, 0.8), (0.8, 0.0, 0.0), (2.0, 0.7, 0.6)] * 6,
    (400.0, 0.0, 0.0),
    *[(0.7, 0.0, 0.8), (0.4, 0.0, 0.0), (2.0, 0.9, 0.0), (0.9, 0.0, 0.0)] * 4,
    *[(9.0, 0.9, 0.0), (1.0, 0.0, 0.0)] * 12,
    (3.0, 0.0, 0.8),
)


def places(windows: Iterable[Window]) -> list[tuple[str | None, int, int]]:
    return [(window.channel, window.start_sample, window.end_sample) for window in windows]


def test_each_channel_has_windows_of_its_own() -> None:
    windows = list(find_windows(blocks(CALL), finder=LevelFinder(), channels=("left", "right")))
    for number, label in enumerate(("left", "right")):
        alone = find_windows(blocks(CALL[number]), finder=LevelFinder())
        mine = [window for window in windows if window.channel == label]
        assert [
            (span.start_sample, span.speech_end - span.speech_start)
            for window in mine
            for span in window.spans
        ] == [
            (span.start_sample, span.speech_end - span.speech_start)
            for window in alone
            for span in window.spans
        ]
        assert all(len(window.samples) <= LIMIT for window in mine)


def test_windows_of_two_channels_come_in_the_order_of_time() -> None:
    windows = list(find_windows(blocks(CALL), finder=LevelFinder(), channels=("left", "right")))
    reached = 0
    for window in windows:
        assert window.start_sample >= reached - 12 * SAMPLE_RATE
        if window.resume_samples:
            reached = max(reached, window.start_sample)


@pytest.mark.parametrize("rules", [RULES, APART], ids=["long", "apart"])
def test_groups_of_a_call_end_where_work_resumes_as_if_never_interrupted(
    rules: SpeechRules,
) -> None:
    channels = ("left", "right")
    whole = list(find_windows(blocks(CALL), finder=LevelFinder(), channels=channels, rules=rules))
    ends = [index for index, window in enumerate(whole, 1) if window.resume_samples]
    assert len(ends) > 5
    for end in ends[:-1]:
        resume = whole[end - 1].resume_samples
        first = resume_from(resume, window_samples=WINDOW)
        rest = find_windows(
            blocks(CALL[:, first:]),
            finder=LevelFinder(),
            channels=channels,
            first_sample=first,
            from_samples=resume,
            rules=rules,
        )
        assert places(rest) == places(whole[end:])


def test_a_group_does_not_end_where_work_could_not_resume() -> None:
    windows = list(find_windows(blocks(CALL), finder=LevelFinder(), channels=("left", "right")))
    for size in (1, 2, 3, 4):
        left = iter(windows)
        groups = list(iter(lambda: take_group(left, size), []))  # noqa: B023 - used at once
        assert places(window for group in groups for window in group) == places(windows)
        assert all(group[-1].resume_samples for group in groups)
        assert all(size <= len(group) <= size + 1 for group in groups[:-1])


def test_a_channel_without_speech_does_not_hold_the_other_up() -> None:
    """Nor is it heard again from its start whenever work resumes, nor read ahead."""
    samples = call((1.0, 0.9, 0.0), (1.0, 0.0, 0.0), *[(6.0, 0.0, 0.9), (1.0, 0.0, 0.0)] * 40)
    read = 0

    def counted() -> Iterator[FloatSamples]:
        nonlocal read
        for block in blocks(samples):
            read += block.shape[1]
            yield block

    windows = find_windows(counted(), finder=LevelFinder(), channels=("left", "right"))
    seen = 0
    for window in windows:
        if window.resume_samples:
            seen += 1
            assert read - min(window.resume_samples) < 12 * SAMPLE_RATE
    assert seen > 5


def test_silence_is_not_heard_again_when_work_resumes() -> None:
    samples = sound((20, 0.9), (1, 0), (20, 0.9), (300, 0), (15, 0.9), (1, 0))
    windows = list(find_windows(blocks(samples), finder=LevelFinder()))
    assert windows[-2].end_sample < 42 * SAMPLE_RATE
    assert windows[-2].resume_samples == (windows[-1].start_sample,)
