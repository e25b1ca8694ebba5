"""The engine with the scripted models on a virtual clock."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import structlog

from asr_engine.audio import SAMPLE_RATE, samples_to_ms
from asr_engine.backends.scripted import (
    BLOCK_SAMPLES,
    ScriptedModel,
    encode_blocks,
    script,
    script_text,
)
from asr_engine.endpointing import EndpointRules
from asr_engine.errors import (
    NoFreeSlotError,
    OverloadedError,
    StreamError,
    UnknownStreamError,
    UnsupportedLanguageError,
    UnsupportedModeError,
)
from asr_engine.events import (
    Ended,
    Endpoint,
    EndpointReason,
    Failed,
    Final,
    Gap,
    Lag,
    Partial,
    StreamEvent,
)
from asr_engine.ports import Capabilities, Chunk, Hypothesis
from asr_engine.results import Word
from asr_engine.streaming import Engine
from tests.fakes.engines import (
    CountingModel,
    FailingModel,
    VirtualClock,
    finals_of,
    hear_alone,
    run,
    scripted_engine,
    text_of,
)

KINDS = pytest.mark.parametrize("is_gated", [False, True], ids=["continuous", "gated"])
MODES = pytest.mark.parametrize("mode_ms", [80, 160, 560, 1120])
PAUSE: list[int | None] = [None] * 10


def played(
    engine: Engine, blocks: list[int | None], stream: str = "a", *, mode_ms: int = 0
) -> list[StreamEvent]:
    """Open `stream`, hear `blocks` at once, leave it open."""
    engine.open_stream(stream, mode_ms=mode_ms)
    engine.accept_audio(stream, 0, encode_blocks(blocks))
    return run(engine)


@KINDS
@MODES
def test_words_become_finals(mode_ms: int, *, is_gated: bool) -> None:
    blocks = script(37)
    events = hear_alone(scripted_engine(is_gated=is_gated), encode_blocks(blocks), mode_ms=mode_ms)
    assert text_of(events) == script_text(blocks)


@KINDS
@MODES
def test_last_word_is_kept_for_every_remainder_of_a_chunk(mode_ms: int, *, is_gated: bool) -> None:
    """Audio that ends on a word, at every hundredth of a second of a chunk."""
    engine = scripted_engine(is_gated=is_gated)
    words = encode_blocks([*PAUSE, *range(20)])
    chunk = mode_ms * SAMPLE_RATE // 1000
    for lead in range(0, chunk, max(160, chunk // 12)):
        audio = np.concatenate([np.zeros(lead, dtype=np.float32), words])
        engine.open_stream("a", mode_ms=mode_ms)
        engine.accept_audio("a", 0, audio)
        engine.end_audio("a")
        assert text_of(run(engine)) == script_text(range(20)), lead
        engine.close_stream("a")


@KINDS
def test_numbers_have_no_holes_and_times_do_not_overlap(*, is_gated: bool) -> None:
    finals = finals_of(hear_alone(scripted_engine(is_gated=is_gated), encode_blocks(script(80))))
    assert [final.utterance for final in finals] == list(range(10))
    for final, following in itertools.pairwise(finals):
        assert 0 <= final.start_ms < final.end_ms <= following.start_ms
    for final in finals:
        assert final.start_ms <= final.words[0].start_ms
        assert final.words[-1].end_ms <= final.end_ms


@KINDS
def test_speech_without_words_takes_no_number(*, is_gated: bool) -> None:
    """A cough opens an utterance and leaves no final."""
    noise = np.random.default_rng(3).normal(0, 0.2, 8 * BLOCK_SAMPLES).astype(np.float32)
    audio = np.concatenate(
        [
            encode_blocks([*PAUSE, 1, 2, 3, *PAUSE]),
            noise,
            encode_blocks([*PAUSE, 4, 5, *PAUSE]),
        ]
    )
    events = hear_alone(scripted_engine(is_gated=is_gated), audio)
    finals = finals_of(events)
    assert [(final.utterance, final.text) for final in finals] == [(0, "w1 w2 w3"), (1, "w4 w5")]
    assert any(isinstance(event, Endpoint) for event in events)


@KINDS
def test_a_final_is_preceded_by_growing_partials_of_its_utterance(*, is_gated: bool) -> None:
    events = hear_alone(scripted_engine(is_gated=is_gated), encode_blocks(script(16)))
    seen: dict[int, str] = {}
    for event in events:
        if isinstance(event, Partial):
            assert event.text.startswith(seen.get(event.utterance, ""))
            seen[event.utterance] = event.text
        if isinstance(event, Final):
            assert event.text.startswith(seen.pop(event.utterance))
    assert seen == {}


@KINDS
@MODES
def test_final_comes_at_the_endpoint_without_more_audio(mode_ms: int, *, is_gated: bool) -> None:
    """The silence rule and no more, however long the mode's chunk: a speaker who falls silent is
    not kept waiting."""
    engine = scripted_engine(is_gated=is_gated)
    events = played(engine, [*PAUSE, *range(6), *[None] * 7], mode_ms=mode_ms)
    assert text_of(events) == script_text(range(6))
    (final,) = finals_of(events)
    assert final.reason is EndpointReason.SILENCE
    assert abs(final.speech_end_ms - 1600) <= 32


@MODES
def test_a_model_of_one_chunk_length_finishes_on_whole_chunks(mode_ms: int) -> None:
    """It waits for the chunk that holds the end of speech, at 1.6 s, and 0.3 s of context."""
    model = CountingModel(mixes_chunks=False)
    engine = scripted_engine(model)
    engine.open_stream("a", mode_ms=mode_ms)
    events: list[StreamEvent] = []
    for index, block in enumerate([*PAUSE, *range(6), *[None] * 20]):
        if not finals_of(events):
            engine.accept_audio("a", index * BLOCK_SAMPLES, encode_blocks([block]))
            events += run(engine)
    assert text_of(events) == script_text(range(6))
    fed_ms = [samples_to_ms(samples) for step in model.steps for _, samples in step]
    assert set(fed_ms) == {mode_ms}
    assert sum(fed_ms) >= 1900
    assert sum(fed_ms[:-1]) <= 2300


def test_chunks_that_end_within_a_window_do_not_wait_for_the_next_packet() -> None:
    """80 ms are two and a half windows of the detector."""
    model = CountingModel()
    engine = scripted_engine(model)
    engine.open_stream("a", mode_ms=80)
    for index in range(5):
        engine.accept_audio("a", index * 1280, encode_blocks([None])[:1280])
        run(engine)
        assert len(model.steps) == index + 1


@KINDS
def test_first_word_is_heard_from_its_start(*, is_gated: bool) -> None:
    """The pre-roll reaches back over the windows that voice activity needs to be sure."""
    blocks: list[int | None] = [None, None, None, 1, 2, 3, *PAUSE]
    (final,) = finals_of(played(scripted_engine(is_gated=is_gated), blocks))
    assert final.text == "w1 w2 w3"
    assert final.words[0].start_ms == 300
    # A continuous model's words may come late: there the utterance begins with its speech, as
    # windows of 32 ms tell it.
    assert 300 - 32 <= final.start_ms <= 300


@KINDS
def test_a_gap_closes_the_utterance_and_is_told(*, is_gated: bool) -> None:
    engine = scripted_engine(is_gated=is_gated)
    engine.open_stream("a")
    engine.accept_audio("a", 0, encode_blocks([*PAUSE, 1, 2, 3]))
    engine.accept_audio("a", 10 * SAMPLE_RATE, encode_blocks([4, 5, *PAUSE]))
    events = run(engine)
    first, second = finals_of(events)
    assert (first.text, first.reason) == ("w1 w2 w3", EndpointReason.GAP)
    assert (second.text, second.reason) == ("w4 w5", EndpointReason.SILENCE)
    assert [event for event in events if isinstance(event, Gap)] == [Gap("a", 1300, 10_000)]
    assert first.resume_sample == 13 * BLOCK_SAMPLES
    assert Endpoint("a", EndpointReason.GAP, 10 * SAMPLE_RATE) in events


def test_a_gap_of_hours_costs_nothing() -> None:
    model = CountingModel()
    engine = scripted_engine(model)
    engine.open_stream("a")
    engine.accept_audio("a", 0, encode_blocks([*PAUSE, 1]))
    engine.accept_audio("a", 5 * 3600 * SAMPLE_RATE, encode_blocks([2, *PAUSE]))
    assert text_of(run(engine)) == "w1 w2"
    assert len(model.steps) < 30


@KINDS
def test_audio_heard_already_is_not_heard_again(*, is_gated: bool) -> None:
    audio = encode_blocks([*PAUSE, *range(9), *PAUSE])
    engine = scripted_engine(is_gated=is_gated)
    engine.open_stream("a")
    events: list[StreamEvent] = []
    for start in range(0, len(audio), 3200):
        engine.accept_audio("a", max(0, start - 2000), audio[max(0, start - 2000) : start + 3200])
        engine.accept_audio("a", 0, audio[:3200])
        events += run(engine)
    assert text_of(events) == script_text(range(9))
    assert not [event for event in events if isinstance(event, Gap)]


@KINDS
def test_a_pause_closes_the_utterance_at_once(*, is_gated: bool) -> None:
    engine = scripted_engine(is_gated=is_gated)
    events = played(engine, [*PAUSE, 1, 2])
    assert finals_of(events) == []
    engine.pause("a")
    (final,) = finals_of(run(engine))
    assert (final.text, final.reason) == ("w1 w2", EndpointReason.PAUSE)
    engine.accept_audio("a", 12 * BLOCK_SAMPLES, encode_blocks([3, 4, *PAUSE]))
    events = run(engine)
    assert text_of(events) == "w3 w4"
    assert not [event for event in events if isinstance(event, Gap)]


@KINDS
def test_a_pause_after_a_pause_closes_nothing(*, is_gated: bool) -> None:
    engine = scripted_engine(is_gated=is_gated)
    played(engine, [*PAUSE, 1, 2])
    for _ in range(3):
        engine.pause("a")
        run(engine)
    engine.accept_audio("a", 12 * BLOCK_SAMPLES, encode_blocks([3, *PAUSE]))
    assert text_of(run(engine)) == "w3"


@KINDS
def test_the_end_gives_the_last_words_and_then_ended(*, is_gated: bool) -> None:
    engine = scripted_engine(is_gated=is_gated)
    played(engine, [*PAUSE, 1, 2])
    engine.end_audio("a", reason=EndpointReason.IDLE)
    *_, final, ended = run(engine)
    assert isinstance(final, Final)
    assert (final.text, final.reason) == ("w1 w2", EndpointReason.IDLE)
    assert ended == Ended("a", 12 * BLOCK_SAMPLES)
    with pytest.raises(StreamError):
        engine.accept_audio("a", 12 * BLOCK_SAMPLES, encode_blocks([3]))


@KINDS
def test_the_end_of_a_stream_without_audio_is_told(*, is_gated: bool) -> None:
    engine = scripted_engine(is_gated=is_gated)
    engine.open_stream("a", first_sample=777)
    engine.end_audio("a")
    assert run(engine)[-1] == Ended("a", 777)


@KINDS
def test_the_end_right_after_a_pause_is_told(*, is_gated: bool) -> None:
    engine = scripted_engine(is_gated=is_gated)
    engine.open_stream("a")
    engine.accept_audio("a", 0, encode_blocks([*PAUSE, 1, 2]))
    engine.pause("a")
    engine.end_audio("a")
    events = run(engine)
    assert text_of(events) == "w1 w2"
    assert events[-1] == Ended("a", 12 * BLOCK_SAMPLES)


def test_endless_speech_loses_no_word_at_its_cuts() -> None:
    """A gated model hears again from the cut what the next utterance owns."""
    blocks: list[int | None] = [None] * 5
    for number in range(700):
        blocks += [number, None, None] if number % 29 == 28 else [number]
    events = hear_alone(scripted_engine(is_gated=True), encode_blocks(blocks))
    finals = finals_of(events)
    assert text_of(events) == script_text(blocks)
    assert {final.reason for final in finals[:-1]} == {EndpointReason.LENGTH}
    assert all(final.end_ms - final.start_ms <= 30_000 for final in finals)
    for final, following in itertools.pairwise(finals):
        assert final.end_ms <= following.start_ms


def test_endless_speech_is_bounded_for_a_continuous_model() -> None:
    events = hear_alone(scripted_engine(), encode_blocks([None, *range(700), None]))
    finals = finals_of(events)
    assert all(final.end_ms - final.start_ms <= 30_500 for final in finals)
    # A word that lies across a cut may show on both sides; none is lost.
    said = [word for final in finals for word in final.text.split()]
    assert list(dict.fromkeys(said)) == script_text(range(700)).split()


@KINDS
@MODES
def test_an_utterance_cut_by_length_in_a_pause_keeps_its_last_word(
    mode_ms: int, *, is_gated: bool
) -> None:
    """Nobody speaks again, so that no later utterance could bring it."""
    rules = EndpointRules(max_utterance_ms=3000, cut_search_ms=1000)
    engine = scripted_engine(is_gated=is_gated, rules=rules)
    events = played(engine, [*PAUSE, *range(26), *[None] * 12], mode_ms=mode_ms)
    (final,) = finals_of(events)
    assert (final.text, final.reason) == (script_text(range(26)), EndpointReason.LENGTH)


@KINDS
@MODES
def test_a_successor_says_exactly_what_was_left(mode_ms: int, *, is_gated: bool) -> None:
    """From any final's resume_sample and number on, another engine says the rest."""
    audio = encode_blocks(script(48))
    finals = finals_of(hear_alone(scripted_engine(is_gated=is_gated), audio, mode_ms=mode_ms))
    for index, final in enumerate(finals[:-1]):
        successor = scripted_engine(is_gated=is_gated)
        successor.open_stream(
            "a",
            mode_ms=mode_ms,
            next_utterance=final.utterance + 1,
            first_sample=final.resume_sample,
        )
        successor.accept_audio("a", 0, audio)
        successor.end_audio("a")
        rest = finals_of(run(successor))
        assert text_of(rest) == text_of(finals[index + 1 :])
        assert rest[0].utterance == final.utterance + 1


@KINDS
def test_silence_moves_the_place_to_resume(*, is_gated: bool) -> None:
    """Else the audio of a silent hour could never be trimmed."""
    engine = scripted_engine(is_gated=is_gated)
    notes = [
        event.resume_sample for event in played(engine, [None] * 300) if isinstance(event, Endpoint)
    ]
    assert notes == sorted(set(notes))
    assert notes[-1] > 24 * SAMPLE_RATE


@KINDS
def test_memory_of_a_stream_is_bounded(*, is_gated: bool) -> None:
    engine = scripted_engine(is_gated=is_gated)
    engine.open_stream("a")
    minute = encode_blocks(script(240, utterance_words=20))
    held = []
    for index in range(10):
        engine.accept_audio("a", index * len(minute), minute)
        run(engine)
        stream = engine._streams["a"]
        held.append(stream.audio.held_samples)
        assert len(stream._arrivals) <= 2
    assert max(held) <= 35 * SAMPLE_RATE


@KINDS
def test_a_model_failure_closes_its_streams_and_no_other(*, is_gated: bool) -> None:
    model = FailingModel(is_gated=is_gated)
    engine = scripted_engine(model)
    blocks = script(16)
    audio = encode_blocks(blocks)
    for stream in ("good", "bad"):
        engine.open_stream(stream)
    half = len(audio) // 2
    engine.accept_audio("good", 0, audio[:half])
    engine.accept_audio("bad", 0, audio[:half])
    events = run(engine)
    model.broken = {"bad"}
    engine.accept_audio("bad", half, audio[half:])
    events += run(engine)
    (failed,) = [event for event in events if isinstance(event, Failed)]
    assert failed.stream == "bad"
    assert failed.next_utterance == len(finals_of(events, "bad"))
    with pytest.raises(UnknownStreamError):
        engine.end_audio("bad")
    model.broken = set()
    engine.open_stream(
        "bad", next_utterance=failed.next_utterance, first_sample=failed.resume_sample
    )
    engine.accept_audio("bad", 0, audio)
    engine.accept_audio("good", half, audio[half:])
    for stream in ("good", "bad"):
        engine.end_audio(stream)
    events += run(engine)
    assert text_of(events, "good") == text_of(events, "bad") == script_text(blocks)


def test_a_model_that_fails_every_time_is_broken_and_one_success_mends_it() -> None:
    model = FailingModel()
    engine = scripted_engine(model)
    for index in range(9):
        model.broken = {"a"}
        played(engine, [*PAUSE, 1])
        assert not engine.is_broken, index
    model.broken = set()
    played(engine, [*PAUSE, 1])
    engine.close_stream("a")
    model.broken = {"a"}
    for _ in range(10):
        assert not engine.is_broken
        played(engine, [*PAUSE, 1])
    assert engine.is_broken


def test_a_failure_is_logged_without_the_models_words() -> None:
    model = FailingModel()
    model.broken = {"a"}
    with structlog.testing.capture_logs() as logs:
        played(scripted_engine(model), [*PAUSE, 1])
    (entry,) = logs
    assert (entry["event"], entry["error"]) == ("model_failed", "RuntimeError")
    assert entry["place"].startswith("engines.py:")
    assert "a decoder's own words" not in str(entry)


def test_slots_are_a_fixed_pool() -> None:
    engine = scripted_engine(ScriptedModel(slots=2))
    engine.open_stream("a")
    engine.open_stream("b")
    with pytest.raises(NoFreeSlotError):
        engine.open_stream("c")
    engine.close_stream("a")
    engine.close_stream("a")
    engine.open_stream("c")
    assert engine.free_slots == 0


def test_a_refused_stream_takes_no_slot() -> None:
    engine = scripted_engine(ScriptedModel(slots=2))
    with pytest.raises(UnsupportedModeError):
        engine.open_stream("a", mode_ms=77)
    assert engine.free_slots == 2


def test_fewer_slots_may_be_configured_but_not_more() -> None:
    assert scripted_engine(ScriptedModel(slots=5), slots=2).slots == 2
    assert scripted_engine(ScriptedModel(slots=5), slots=50).slots == 5


def test_a_stream_is_opened_once() -> None:
    engine = scripted_engine()
    engine.open_stream("a")
    with pytest.raises(StreamError):
        engine.open_stream("a")


def test_streams_share_one_step() -> None:
    model = CountingModel()
    engine = scripted_engine(model)
    for stream in ("a", "b", "c"):
        engine.open_stream(stream)
        engine.accept_audio(stream, 0, encode_blocks([None, None]))
    engine.step()
    assert [sorted(name for name, _ in step) for step in model.steps] == [["a", "b", "c"]]


def test_a_gated_model_is_fed_only_utterances() -> None:
    model = CountingModel(is_gated=True)
    played(scripted_engine(model), [*[None] * 100, 1, 2, 3, *[None] * 100])
    fed = sum(samples for step in model.steps for _, samples in step)
    assert samples_to_ms(fed) <= 300 + 300 + 700


def test_a_laggard_catches_up_by_longer_chunks_and_says_so() -> None:
    clock = VirtualClock()
    model = CountingModel(takes_longer_chunks=True)
    engine = scripted_engine(model, clock=clock)
    blocks = script(40)
    engine.open_stream("a")
    engine.accept_audio("a", 0, encode_blocks(blocks))
    clock.advance(10)
    events = run(engine)
    lags = [event.behind_ms for event in events if isinstance(event, Lag)]
    assert lags[0] > 2000
    assert lags[-1] == 0
    assert max(samples for step in model.steps for _, samples in step) == 8 * 2560
    assert text_of(events) == script_text(blocks)


def test_a_stream_that_keeps_up_says_nothing_of_lag() -> None:
    events = hear_alone(scripted_engine(), encode_blocks(script(20)))
    assert not [event for event in events if isinstance(event, Lag)]


def test_new_streams_are_refused_while_one_lags() -> None:
    engine = scripted_engine()
    engine.check_admission()
    engine.open_stream("a")
    engine.accept_audio("a", 0, encode_blocks([None] * 50))
    with pytest.raises(OverloadedError):
        engine.check_admission()
    run(engine)
    engine.check_admission()


def test_a_refusal_for_load_is_logged_with_its_figures() -> None:
    engine = scripted_engine()
    engine.open_stream("a")
    engine.accept_audio("a", 0, encode_blocks([None] * 50))
    with structlog.testing.capture_logs() as logs, pytest.raises(OverloadedError):
        engine.check_admission()
    (entry,) = logs
    assert entry["event"] == "stream_would_be_late"
    assert (entry["streams"], entry["lag_ms"], entry["busy_percent"]) == (1, 4840, 0)


def test_full_engine_refuses_by_slots() -> None:
    engine = scripted_engine(ScriptedModel(slots=1))
    engine.open_stream("a")
    with pytest.raises(NoFreeSlotError):
        engine.check_admission()


@KINDS
def test_mode_changes_while_a_stream_runs(*, is_gated: bool) -> None:
    """No word is lost or doubled, wherever in an utterance the mode changes."""
    blocks = script(60)
    audio = encode_blocks(blocks)
    engine = scripted_engine(is_gated=is_gated)
    engine.open_stream("a", mode_ms=80)
    events: list[StreamEvent] = []
    modes = itertools.cycle([1120, 160, 560, 80])
    for start in range(0, len(audio), 4800):
        engine.accept_audio("a", start, audio[start : start + 4800])
        engine.set_mode("a", mode_ms=next(modes))
        events += run(engine)
    engine.end_audio("a")
    events += run(engine)
    assert text_of(events) == script_text(blocks)


def test_a_mode_change_counts_from_the_next_chunk_even_while_an_endpoint_waits() -> None:
    model = CountingModel()
    engine = scripted_engine(model)
    engine.open_stream("a", mode_ms=80)
    engine.accept_audio("a", 0, encode_blocks([*PAUSE, 1, 2, *PAUSE]))
    engine.step()
    engine.set_mode("a", mode_ms=560)
    engine.step()
    assert model.steps == [[("a", 1280)], [("a", 8960)]]
    assert text_of(run(engine)) == "w1 w2"


class PolyglotModel(ScriptedModel):
    """Says each word in the language that its stream was opened in."""

    def __init__(self, *, is_gated: bool = False) -> None:
        super().__init__(is_gated=is_gated)
        self.language: str | None = None

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, languages=("en", "de"))

    def open(self, stream: str, *, language: str | None, mode_ms: int) -> None:
        super().open(stream, language=language, mode_ms=mode_ms)
        self.language = language

    def finish(self, streams: Sequence[str]) -> list[Hypothesis]:
        return [replace(last, language=self.language) for last in super().finish(streams)]


@KINDS
def test_a_language_changes_with_the_next_utterance_and_costs_no_word(*, is_gated: bool) -> None:
    blocks = script(40)
    audio = encode_blocks(blocks)
    engine = scripted_engine(PolyglotModel(is_gated=is_gated))
    engine.open_stream("a", language="en")
    events: list[StreamEvent] = []
    for start in range(0, len(audio), 1600):
        if start == 32_000:  # in the middle of the first utterance
            engine.set_language("a", language="de")
        engine.accept_audio("a", start, audio[start : start + 1600])
        events += run(engine)
    engine.end_audio("a")
    events += run(engine)
    assert text_of(events) == script_text(blocks)
    assert [final.language for final in finals_of(events)] == ["en", "de", "de", "de", "de"]


def test_a_language_that_the_model_lacks_is_refused() -> None:
    engine = scripted_engine(PolyglotModel())
    engine.open_stream("a", language="en")
    with pytest.raises(UnsupportedLanguageError):
        engine.set_language("a", language="fr")


class ImaginativeModel(ScriptedModel):
    """Hears words in noise: each of `imagined` once the audio up to its end was fed."""

    def __init__(self, imagined: list[Word]) -> None:
        super().__init__()
        self._imagined = imagined
        self._said_ms = self._heard_ms = 0

    def step(self, chunks: Sequence[Chunk]) -> list[Hypothesis]:
        (chunk,) = chunks
        self._heard_ms = samples_to_ms(chunk.start_sample + len(chunk.samples))
        return [self._imagine(item) for item in super().step(chunks)]

    def finish(self, streams: Sequence[str]) -> list[Hypothesis]:
        last = [self._imagine(item) for item in super().finish(streams)]
        self._said_ms = self._heard_ms
        return last

    def _imagine(self, hypothesis: Hypothesis) -> Hypothesis:
        more = [word for word in self._imagined if self._said_ms < word.end_ms <= self._heard_ms]
        words = sorted((*hypothesis.words, *more), key=lambda word: word.start_ms)
        return replace(
            hypothesis, words=tuple(words), stable_words=hypothesis.stable_words + len(more)
        )


def test_words_heard_in_noise_before_an_utterance_are_dropped_but_not_its_predecessors() -> None:
    """A continuous model hears what voice activity did not take for speech."""
    imagined = [
        Word("noise", 500, 700),
        Word("late", 4050, 4250),  # the speech before ended at 3.3 s
        Word("noise", 5000, 5200),
        Word("onset", 5900, 6100),  # within the pre-roll of speech at 6.3 s
    ]
    blocks: list[int | None] = [*[None] * 30, 1, 2, 3, *[None] * 30, 4, 5, *PAUSE]
    events = played(scripted_engine(ImaginativeModel(imagined)), blocks)
    assert [final.text for final in finals_of(events)] == ["w1 w2 w3", "late onset w4 w5"]
    partials = [event for event in events if isinstance(event, Partial)]
    assert not [partial for partial in partials if "noise" in partial.text]
    assert all(partial.stable_words <= len(partial.words) for partial in partials)
    assert partials[-1].words[0].text == "late"


def metric(engine: Engine, name: str, mode_ms: int = 160) -> float | None:
    return engine.metrics.registry.get_sample_value(name, {"mode_ms": str(mode_ms)})


def test_each_mode_has_its_measures() -> None:
    clock = VirtualClock()
    engine = scripted_engine(clock=clock)
    engine.open_stream("a", mode_ms=160)
    engine.open_stream("b", mode_ms=1120)
    engine.accept_audio("a", 0, encode_blocks([*PAUSE, 1, 2, *PAUSE]))
    clock.advance(0.05)
    run(engine)
    assert metric(engine, "asr_finalisation_delay_seconds_count") == 1
    assert metric(engine, "asr_finalisation_delay_seconds_sum") == 0
    assert metric(engine, "asr_first_partial_seconds_sum") == pytest.approx(0.05)
    assert metric(engine, "asr_batch_streams_sum") == metric(engine, "asr_step_seconds_count") == 13
    assert metric(engine, "asr_chunk_lag_seconds_sum") == 0
    assert metric(engine, "asr_ready_age_seconds_sum") == pytest.approx(13 * 0.05)
    assert metric(engine, "asr_step_seconds_count", 1120) == 0
    assert [metric(engine, "asr_streams", mode) for mode in (80, 160, 1120)] == [0, 1, 1]
    assert engine.metrics.registry.get_sample_value("asr_free_slots") == 18


def test_a_step_counts_for_the_mode_of_its_chunk_and_a_final_for_that_of_its_stream() -> None:
    """The tail of an utterance in the 1120 ms mode takes a shorter chunk."""
    engine = scripted_engine()
    played(engine, [*[None] * 3, *range(9), *[None] * 7], mode_ms=1120)
    assert metric(engine, "asr_step_seconds_count", 1120) == 1
    assert metric(engine, "asr_step_seconds_count", 560) == 1
    assert metric(engine, "asr_finalisation_delay_seconds_count", 1120) == 1


def test_streams_are_counted_in_the_mode_that_they_changed_to() -> None:
    engine = scripted_engine()
    engine.open_stream("a", mode_ms=160)
    engine.set_mode("a", mode_ms=80)
    run(engine)
    assert [metric(engine, "asr_streams", mode) for mode in (80, 160)] == [1, 0]
    engine.close_stream("a")
    assert metric(engine, "asr_streams", 80) == 0


def test_a_shorter_silence_rule_ends_utterances_sooner() -> None:
    rules = EndpointRules(silence_ms=300)
    blocks: list[int | None] = [*PAUSE, 1, 2, None, None, None, None, 3, *PAUSE]
    assert [final.text for final in finals_of(played(scripted_engine(rules=rules), blocks))] == [
        "w1 w2",
        "w3",
    ]
