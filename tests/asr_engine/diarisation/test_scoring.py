"""DER on cases whose answer is plain."""

from __future__ import annotations

import pytest

from asr_engine.diarisation.port import Turn
from asr_engine.diarisation.scoring import DiarisationScore, score_turns

ALICE, BOB = Turn(0, 10_000, "alice"), Turn(10_000, 20_000, "bob")


def test_labels_need_not_agree() -> None:
    score = score_turns([ALICE, BOB], [Turn(0, 10_000, "2"), Turn(10_000, 20_000, "1")])
    assert score.rate == 0


def test_collar_around_each_border_is_not_counted() -> None:
    score = score_turns([ALICE, BOB], [Turn(0, 10_200, "1"), Turn(10_200, 20_200, "2")])
    assert score == DiarisationScore(speech_ms=19_000)


def test_one_voice_for_two_people_confuses_the_lesser() -> None:
    score = score_turns([ALICE, Turn(10_000, 15_000, "bob")], [Turn(0, 15_000, "1")], collar_ms=0)
    assert score == DiarisationScore(confused_ms=5000, speech_ms=15_000)


def test_missed_and_invented_speech_are_told_apart() -> None:
    score = score_turns([ALICE], [Turn(5000, 12_000, "1")], collar_ms=0)
    assert score == DiarisationScore(missed_ms=5000, false_ms=2000, speech_ms=10_000)
    assert score.rate == pytest.approx(0.7)


def test_overlap_counts_for_each_speaker() -> None:
    score = score_turns([ALICE, Turn(0, 10_000, "bob")], [Turn(0, 10_000, "1")], collar_ms=0)
    assert score == DiarisationScore(missed_ms=10_000, speech_ms=20_000)


def test_best_match_is_not_the_greedy_one() -> None:
    reference = [Turn(0, 5000, "a"), Turn(5000, 9000, "a"), Turn(9000, 13_000, "b")]
    heard = [Turn(0, 5000, "1"), Turn(5000, 9000, "2"), Turn(9000, 13_000, "1")]
    score = score_turns(reference, heard, collar_ms=0)
    assert score.confused_ms == 5000


def test_nobody_speaking_has_no_rate() -> None:
    assert score_turns([], []).rate is None
