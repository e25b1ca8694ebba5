from __future__ import annotations

from collections.abc import Sequence

import pytest

from asr_engine.audio import ms_to_samples
from asr_engine.endpointing import (
    Activity,
    Closed,
    EndpointRules,
    HeardWindow,
    Opened,
    decide,
)
from asr_engine.events import EndpointReason

WINDOW = 512
RULES = EndpointRules()


def decisions(
    probabilities: Sequence[float], rules: EndpointRules = RULES
) -> list[Opened | Closed]:
    activity = Activity()
    made = []
    for index, probability in enumerate(probabilities):
        window = HeardWindow(index * WINDOW, (index + 1) * WINDOW, probability)
        activity, decision = decide(activity, window, rules)
        if decision is not None:
            made.append(decision)
    return made


def windows(ms: int) -> int:
    return -(-ms_to_samples(ms) // WINDOW)


def test_silence_decides_nothing() -> None:
    assert decisions([0.1] * 1000) == []


def test_utterance_opens_with_its_pre_roll_and_closes_after_the_silence() -> None:
    opened, closed = decisions([0.0] * 20 + [0.9] * 30 + [0.0] * 20)
    assert isinstance(opened, Opened)
    assert isinstance(closed, Closed)
    assert opened.speech_start == 20 * WINDOW
    assert opened.speech_start - opened.start_sample == ms_to_samples(300)
    assert closed.reason is EndpointReason.SILENCE
    assert closed.speech_end == 50 * WINDOW
    assert ms_to_samples(600) <= closed.decided_sample - closed.speech_end < ms_to_samples(640)


def test_a_click_opens_nothing() -> None:
    assert decisions([0.0] * 5 + [0.9] * 2 + [0.0] * 40) == []


def test_hysteresis_holds_an_utterance_through_doubtful_windows() -> None:
    made = decisions([0.9] * 10 + [0.4] * 60 + [0.9] * 10)
    assert [type(item) for item in made] == [Opened]


def test_doubtful_windows_alone_open_nothing() -> None:
    assert decisions([0.4] * 100) == []


def test_a_pause_shorter_than_the_rule_closes_nothing() -> None:
    made = decisions([0.9] * 10 + [0.0] * windows(500) + [0.9] * 10)
    assert [type(item) for item in made] == [Opened]


def test_endless_speech_is_cut_at_its_best_recent_pause() -> None:
    """The longest pause of the last ten seconds wins, and speech goes on from its middle."""
    speech = [0.9] * windows(35_000)
    short, long = windows(21_000), windows(24_000)
    speech[short : short + 3] = [0.1] * 3
    speech[long : long + 8] = [0.1] * 8
    opened, cut, *rest = decisions(speech)
    assert isinstance(opened, Opened)
    assert isinstance(cut, Closed)
    assert cut.reason is EndpointReason.LENGTH
    assert cut.cut_sample == (long + 4) * WINDOW
    assert cut.decided_sample - opened.start_sample <= ms_to_samples(30_000)
    assert rest == []


def test_a_pause_before_the_search_is_no_place_to_cut() -> None:
    speech = [0.9] * windows(32_000)
    early = windows(10_000)
    speech[early : early + 10] = [0.1] * 10
    cut = decisions(speech)[1]
    assert isinstance(cut, Closed)
    assert cut.cut_sample is not None
    assert cut.cut_sample > early * WINDOW + ms_to_samples(9_000)


def test_without_a_search_the_cut_is_made_at_once() -> None:
    rules = EndpointRules(cut_search_ms=0)
    cut = decisions([0.9] * windows(32_000), rules)[1]
    assert isinstance(cut, Closed)
    assert cut.cut_sample == cut.decided_sample


def test_every_piece_of_endless_speech_is_bounded() -> None:
    starts = [0]
    for made in decisions([0.9] * windows(300_000)):
        if isinstance(made, Closed):
            assert made.cut_sample is not None
            assert made.decided_sample - starts[-1] <= ms_to_samples(30_000)
            starts.append(made.cut_sample)
    assert len(starts) >= 10


@pytest.mark.parametrize(
    "wrong",
    [
        {"pre_roll_ms": 200},
        {"silence_ms": 250},
        {"speech_threshold": 0.2},
        {"silence_threshold": 0.0},
        {"cut_search_ms": 30_000},
    ],
)
def test_rules_that_lose_words_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"must|loses|repeat"):
        EndpointRules(**wrong)  # type: ignore[arg-type]
