"""The text hangs on the samples alone: not on packets, neighbours or the order of arrival."""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.backends.scripted import (
    BLOCK_SAMPLES,
    ScriptedModel,
    encode_blocks,
    script,
    script_text,
)
from asr_engine.events import Final, Gap, StreamEvent
from asr_engine.streaming import Engine
from tests.fakes.engines import (
    CountingModel,
    finals_of,
    hear_alone,
    packets,
    run,
    scripted_engine,
    text_of,
)

BLOCKS = script(24, utterance_words=7, pause_ms=900)
MODES = st.sampled_from([80, 160, 560, 1120])
SIZES = st.lists(st.integers(1, 20_000), min_size=1, max_size=40)
PLAIN = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@cache
def audio() -> FloatSamples:
    return encode_blocks(BLOCKS)


@cache
def alone(mode_ms: int, *, is_gated: bool) -> list[Final]:
    return finals_of(hear_alone(scripted_engine(is_gated=is_gated), audio(), mode_ms=mode_ms))


def same(finals: list[Final], expected: list[Final]) -> bool:
    """Text, numbers, times and places to resume: all but the stream's name and the clock."""
    return [
        (item.utterance, item.text, item.start_ms, item.end_ms, item.resume_sample)
        for item in finals
    ] == [
        (item.utterance, item.text, item.start_ms, item.end_ms, item.resume_sample)
        for item in expected
    ]


@PLAIN
@given(SIZES, MODES, st.booleans())
def test_any_packet_size_gives_the_same_finals(
    sizes: list[int], mode_ms: int, is_gated: bool
) -> None:
    engine = scripted_engine(is_gated=is_gated)
    engine.open_stream("a", mode_ms=mode_ms)
    events: list[StreamEvent] = []
    for first_sample, packet in packets(audio(), sizes):
        engine.accept_audio("a", first_sample, packet)
        events += run(engine)
    engine.end_audio("a")
    events += run(engine)
    assert same(finals_of(events), alone(mode_ms, is_gated=is_gated))


@PLAIN
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(500, 9000), MODES), min_size=2, max_size=5),
    st.booleans(),
)
def test_neighbours_and_staggered_starts_change_nothing(
    plans: list[tuple[int, int, int]], is_gated: bool
) -> None:
    engine = scripted_engine(is_gated=is_gated)
    waiting = {
        str(index): [None] * delay + list(packets(audio(), [size]))
        for index, (delay, size, _mode) in enumerate(plans)
    }
    for index, (_delay, _size, mode_ms) in enumerate(plans):
        engine.open_stream(str(index), mode_ms=mode_ms)
    events: list[StreamEvent] = []
    while any(waiting.values()):
        for stream, queue in waiting.items():
            if queue and (entry := queue.pop(0)) is not None:
                engine.accept_audio(stream, *entry)
        engine.step()
        events += engine.take_events()
    for stream in waiting:
        engine.end_audio(stream)
    events += run(engine)
    for index, (_delay, _size, mode_ms) in enumerate(plans):
        assert same(finals_of(events, str(index)), alone(mode_ms, is_gated=is_gated))


@PLAIN
@given(
    st.lists(st.tuples(st.integers(0, 150_000), st.integers(1, 30_000)), max_size=25),
    MODES,
    st.booleans(),
)
def test_replayed_and_overlapping_packets_change_nothing(
    replays: list[tuple[int, int]], mode_ms: int, is_gated: bool
) -> None:
    engine = scripted_engine(is_gated=is_gated)
    engine.open_stream("a", mode_ms=mode_ms)
    events: list[StreamEvent] = []
    replay = iter(replays)
    for first_sample, packet in packets(audio(), [5000]):
        engine.accept_audio("a", first_sample, packet)
        start, length = next(replay, (0, 1))
        start = min(start, first_sample)
        engine.accept_audio("a", start, audio()[start : start + length])
        events += run(engine)
    engine.end_audio("a")
    events += run(engine)
    assert same(finals_of(events), alone(mode_ms, is_gated=is_gated))


@PLAIN
@given(
    st.lists(st.integers(1, len(BLOCKS) - 1), max_size=5, unique=True),
    SIZES,
    MODES,
    st.booleans(),
)
def test_lost_blocks_are_missed_and_nothing_else(
    lost: list[int], sizes: list[int], mode_ms: int, is_gated: bool
) -> None:
    """Whole words fall out with the packets that held them; every gap is told."""
    engine = scripted_engine(is_gated=is_gated)
    engine.open_stream("a", mode_ms=mode_ms)
    kept = [index for index in range(len(BLOCKS)) if index not in lost]
    events: list[StreamEvent] = []
    for first_sample, samples in _pieces(kept):
        for start, packet in packets(samples, sizes, first_sample=first_sample):
            engine.accept_audio("a", start, packet)
            events += run(engine)
    engine.end_audio("a")
    events += run(engine)
    assert text_of(events) == script_text(BLOCKS[index] for index in kept)
    gaps = [event for event in events if isinstance(event, Gap)]
    inner = {index for index in lost if index < max(kept)}
    assert sum(gap.end_ms - gap.start_ms for gap in gaps) == 100 * len(inner)


def _pieces(kept: list[int]) -> list[tuple[int, FloatSamples]]:
    """Runs of neighbouring blocks with their first samples."""
    pieces: list[tuple[int, FloatSamples]] = []
    start = kept[0]
    for index, following in zip(kept, [*kept[1:], -1], strict=True):
        if following != index + 1:
            begin, end = start * BLOCK_SAMPLES, (index + 1) * BLOCK_SAMPLES
            pieces.append((begin, audio()[begin:end]))
            start = following
    return pieces


@PLAIN
@given(st.integers(0, len(BLOCKS) * BLOCK_SAMPLES), MODES, st.booleans())
def test_a_take_over_at_any_moment_loses_and_doubles_nothing(
    moment: int, mode_ms: int, is_gated: bool
) -> None:
    """An engine dies after `moment`; another begins where the last published event says."""
    first = scripted_engine(is_gated=is_gated)
    first.open_stream("a", mode_ms=mode_ms)
    for first_sample, packet in packets(audio()[:moment], [3200]):
        first.accept_audio("a", first_sample, packet)
    said = finals_of(run(first))
    second = _successor(said, mode_ms, is_gated=is_gated)
    second.accept_audio("a", 0, audio())
    second.end_audio("a")
    rest = finals_of(run(second))
    assert text_of(said + rest) == script_text(BLOCKS)
    assert [item.utterance for item in said + rest] == list(range(len(said + rest)))


def _successor(said: list[Final], mode_ms: int, *, is_gated: bool) -> Engine:
    engine = scripted_engine(is_gated=is_gated)
    engine.open_stream(
        "a",
        mode_ms=mode_ms,
        next_utterance=said[-1].utterance + 1 if said else 0,
        first_sample=said[-1].resume_sample if said else 0,
    )
    return engine


def _led(lead: int, blocks: list[int | None]) -> FloatSamples:
    return np.concatenate([np.zeros(lead, dtype=np.float32), encode_blocks(blocks)])


@PLAIN
@given(st.integers(0, 17_919), MODES, st.booleans(), st.booleans())
def test_last_word_is_kept_at_the_end_for_every_remainder_of_a_chunk(
    lead: int, mode_ms: int, is_gated: bool, mixes_chunks: bool
) -> None:
    model = CountingModel(is_gated=is_gated, mixes_chunks=mixes_chunks)
    events = hear_alone(
        scripted_engine(model), _led(lead, [*[None] * 5, *range(12)]), mode_ms=mode_ms
    )
    assert text_of(events) == script_text(range(12))


@PLAIN
@given(st.integers(0, 17_919), MODES, st.sampled_from([20, 100, 333]))
def test_last_word_is_kept_at_every_endpoint_within_few_steps(
    lead: int, mode_ms: int, packet_ms: int
) -> None:
    """Nothing comes after the silence rule's audio, wherever the end of speech lies in a chunk."""
    model = CountingModel()
    engine = scripted_engine(model)
    engine.open_stream("a", mode_ms=mode_ms)
    events: list[StreamEvent] = []
    samples = _led(lead, [*[None] * 5, *range(12), *[None] * 7])
    for first_sample, packet in packets(samples, [packet_ms * SAMPLE_RATE // 1000]):
        engine.accept_audio("a", first_sample, packet)
        events += run(engine)
    assert text_of(events) == script_text(range(12))
    tail = [step for step in model.steps if step != [("a", mode_ms * SAMPLE_RATE // 1000)]]
    assert len(tail) <= 3


@PLAIN
@given(
    st.lists(st.tuples(st.integers(0, 150_000), MODES), min_size=10, max_size=10),
    SIZES,
    st.sampled_from(["continuous", "of one chunk length", "gated"]),
)
def test_mode_changes_anywhere_lose_and_double_no_word(
    changes: list[tuple[int, int]], sizes: list[int], kind: str
) -> None:
    engine = scripted_engine(
        CountingModel(is_gated=kind == "gated", mixes_chunks=kind == "continuous")
    )
    engine.open_stream("a")
    waiting = sorted(changes)
    events: list[StreamEvent] = []
    for first_sample, packet in packets(audio(), sizes):
        engine.accept_audio("a", first_sample, packet)
        while waiting and waiting[0][0] < first_sample + len(packet):
            engine.set_mode("a", mode_ms=waiting.pop(0)[1])
            engine.step()
        events += engine.take_events() + run(engine)
    engine.end_audio("a")
    events += run(engine)
    assert text_of(events) == script_text(BLOCKS)


@settings(PLAIN, max_examples=6)
@given(
    st.sampled_from([20, 100, 333]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_thirty_two_streams_of_every_mode_say_what_their_scripts_say(
    packet_ms: int, is_gated: bool, random: Random
) -> None:
    """At staggered starts, each with words of its own; half of them change the mode on the way."""
    model = ScriptedModel(slots=32, is_gated=is_gated)
    engine = scripted_engine(model)
    modes = model.capabilities.modes_ms
    scripts = {
        str(index): script(14, first=100 * index, utterance_words=5, pause_ms=800)
        for index in range(32)
    }
    waiting: dict[str, list[tuple[int, FloatSamples] | None]] = {}
    for index, (stream, blocks) in enumerate(scripts.items()):
        engine.open_stream(stream, mode_ms=modes[index % 4])
        size = packet_ms * SAMPLE_RATE // 1000
        waiting[stream] = [None] * random.randrange(40) + list(
            packets(encode_blocks(blocks), [size])
        )
    events: list[StreamEvent] = []
    while any(waiting.values()):
        for stream, queue in waiting.items():
            if queue and (entry := queue.pop(0)) is not None:
                engine.accept_audio(stream, *entry)
                if not queue:
                    engine.end_audio(stream)
        changing = str(random.randrange(16))
        engine.set_mode(changing, mode_ms=random.choice(modes))
        engine.step()
    events += run(engine)
    for stream, blocks in scripts.items():
        assert text_of(events, stream) == script_text(blocks)
