"""What every BatchModel keeps, whatever is behind it."""

from __future__ import annotations

import pytest

from asr_engine.backends import whisper_batch
from asr_engine.backends.scripted import ScriptedBatchModel, encode_blocks
from asr_engine.config import engine_settings
from asr_engine.ports import BatchModel, Candidate, DecodeOptions, Window
from asr_engine.results import join_words
from tests.fakes.speech import ACCOUNT, SILLY

GREEDY = DecodeOptions()
BEAM = DecodeOptions(beam_size=3, candidates=3)
START = 160_000


@pytest.fixture(
    scope="module", params=["scripted", pytest.param("whisper", marks=pytest.mark.models)]
)
def spoken(request: pytest.FixtureRequest) -> tuple[BatchModel, list[Window]]:
    """A model, and two windows of English that it can read."""
    if request.param == "scripted":
        audio = [encode_blocks(range(40)), encode_blocks(range(100, 120))]
        return ScriptedBatchModel(), [Window(START, samples) for samples in audio]
    audio = [SILLY.samples(), ACCOUNT.samples()]
    model = whisper_batch.create(engine_settings())
    return model, [Window(START, samples) for samples in audio]


def texts(heard: list[list[Candidate]]) -> list[str]:
    return [candidates[0].text for candidates in heard]


def test_it_says_what_it_can(spoken: tuple[BatchModel, list[Window]]) -> None:
    model, _ = spoken
    assert model.name
    assert "en" in model.languages
    assert model.batch_windows >= 1
    assert 0 < model.refine_share <= 1


def test_one_encoder_output_is_decoded_again_and_again(
    spoken: tuple[BatchModel, list[Window]],
) -> None:
    model, windows = spoken
    encoded, languages = model.encode(windows), ["en", "en"]
    first = model.decode(windows, encoded, languages=languages, options=GREEDY)
    beam = model.decode(windows, encoded, languages=languages, options=BEAM)
    again = model.decode(windows, encoded, languages=languages, options=GREEDY)
    assert texts(again) == texts(first)
    assert all(len(candidates) == 1 for candidates in first)
    for candidates in beam:
        assert 1 <= len(candidates) <= 3
        scores = [candidate.mean_log_probability for candidate in candidates]
        assert scores == sorted(scores, reverse=True)


def test_what_is_prepared_is_read_alike(spoken: tuple[BatchModel, list[Window]]) -> None:
    model, windows = spoken
    prepared = [model.prepare(window) for window in windows]
    assert all(window.features is not None for window in prepared)
    read = [
        texts(model.decode(some, model.encode(some), languages=["en", "en"], options=GREEDY))
        for some in (windows, prepared)
    ]
    assert read[0] == read[1]


def test_gathered_windows_are_read_as_where_they_came_from(
    spoken: tuple[BatchModel, list[Window]],
) -> None:
    model, windows = spoken
    room = max(len(window.samples) for window in windows)
    encoded = model.encode(windows, room_samples=room)
    single = model.encode(windows[:1], room_samples=room)
    straight = model.decode(windows, encoded, languages=["en", "en"], options=GREEDY)
    gathered = model.gather([(encoded, 1), (single, 0)])
    turned = model.decode(windows[::-1], gathered, languages=["en", "en"], options=GREEDY)
    assert texts(turned) == texts(straight)[::-1]


def test_words_are_timed_on_the_windows_clock_and_make_up_the_text(
    spoken: tuple[BatchModel, list[Window]],
) -> None:
    model, windows = spoken
    encoded, languages = model.encode(windows), ["en", "en"]
    heard = model.decode(windows, encoded, languages=languages, options=GREEDY)
    timed = model.time_words(
        windows, encoded, [candidates[0] for candidates in heard], languages=languages
    )
    for window, candidates, segments in zip(windows, heard, timed, strict=True):
        words = [word for segment in segments for word in segment.words]
        assert join_words(words) == candidates[0].text
        starts = [word.start_ms for word in words]
        assert starts == sorted(starts)
        assert starts[0] >= 10_000
        assert words[-1].end_ms <= 10_000 + len(window.samples) // 16 + 100
        assert all(segment.language == "en" for segment in segments)


def test_language_scores_are_probabilities(spoken: tuple[BatchModel, list[Window]]) -> None:
    model, windows = spoken
    for scores in model.language_scores(windows, model.encode(windows)):
        assert set(scores) <= set(model.languages)
        assert 0.99 < sum(scores.values()) < 1.01
        assert max(scores, key=lambda language: scores[language]) == "en"


def test_what_did_not_come_from_it_is_refused(spoken: tuple[BatchModel, list[Window]]) -> None:
    model, windows = spoken
    with pytest.raises(TypeError):
        model.decode(windows, object(), languages=["en", "en"], options=GREEDY)
    foreign = [Candidate("no", 0.0, 0.0, 1.0)] * 2
    with pytest.raises(TypeError):
        model.time_words(windows, model.encode(windows), foreign, languages=["en", "en"])
