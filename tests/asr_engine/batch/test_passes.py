"""A pass judges what was decoded: what is not sound is decoded again, dropped, or marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from asr_engine.audio import SAMPLE_RATE
from asr_engine.backends.scripted import ScriptedBatchModel, encode_blocks
from asr_engine.batch import passes
from asr_engine.batch.passes import Batch, PassRules, hear
from asr_engine.batch.rescoring import Rescorer
from asr_engine.ports import Candidate, DecodeOptions, Window, WindowSpan
from asr_engine.results import Segment, Word

GOOD = Candidate("I am here.", -0.3, 0.0, 1.0, tokens="good")
BETTER = Candidate("I am there.", -0.4, 0.0, 1.0, tokens="better")
LOOP = Candidate("I am here. " * 40, -0.1, 0.0, 9.0, tokens="loop")
NOISE = Candidate("Grwl.", -1.7, 0.1, 1.0, tokens="noise")
SILENCE = Candidate("Thank you.", -1.2, 0.9, 1.0, tokens="silence")


class Says(ScriptedBatchModel):
    """Answers each call of `decode` with the next of its candidates for the windows."""

    def __init__(self, *answers: list[list[Candidate]]) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[int, DecodeOptions]] = []

    def decode(
        self,
        windows: Sequence[Window],
        encoded: object,
        *,
        languages: Sequence[str],
        options: DecodeOptions,
    ) -> list[list[Candidate]]:
        self.asked.append((len(windows), options))
        return self._answers.pop(0)

    def time_words(
        self, windows: Sequence[Window], encoded: object, candidates: Any, *, languages: Any
    ) -> list[list[Segment]]:
        return [
            [Segment(0, 900, candidate.text, (Word(candidate.text, 100, 900),))]
            for candidate in candidates
        ]


def batch(model: ScriptedBatchModel, windows: int = 1, seconds: float = 2.0) -> Batch:
    samples = encode_blocks(range(round(seconds * 10)))
    spans = (WindowSpan(0, 5 * SAMPLE_RATE, 0, len(samples)),)
    framed = [Window(5 * SAMPLE_RATE, samples, spans)] * windows
    return Batch(framed, model.encode(framed), ["en"] * windows)


def segments(model: ScriptedBatchModel, rules: PassRules, **how: Any) -> list[list[Segment]]:
    return [list(hearing.segments()) for hearing in hear(model, batch(model, **how), rules)]


@pytest.mark.parametrize("rules", [passes.DRAFT, passes.REFINE])
def test_text_where_nobody_spoke_is_left_out_without_a_mark(rules: PassRules) -> None:
    assert segments(Says([[SILENCE]]), rules) == [[]]


@pytest.mark.parametrize("rules", [passes.DRAFT, passes.REFINE])
def test_a_loop_is_decoded_again_without_repetition(rules: PassRules) -> None:
    model = Says([[LOOP]], [[GOOD]])
    ((segment,),) = segments(model, rules)
    assert segment.text == GOOD.text
    assert model.asked[1][1].avoids_repetition


def test_only_windows_that_failed_are_decoded_again() -> None:
    model = Says([[GOOD], [LOOP], [GOOD]], [[BETTER]])
    heard = segments(model, passes.DRAFT, windows=3)
    assert [one[0].text for one in heard] == [GOOD.text, BETTER.text, GOOD.text]
    assert [windows for windows, _ in model.asked] == [3, 1]


def test_a_sound_candidate_further_down_is_taken_without_a_retry() -> None:
    model = Says([[LOOP, GOOD]])
    ((segment,),) = segments(model, passes.REFINE)
    assert segment.text == GOOD.text


def test_retries_rise_in_temperature() -> None:
    model = Says(*[[[NOISE]]] * 4)
    segments(model, passes.REFINE)
    temperatures = [options.temperature for _, options in model.asked]
    assert temperatures == sorted(temperatures)
    assert temperatures[-1] > 0


def test_what_never_gets_sound_is_marked_and_not_written_down() -> None:
    ((mark,),) = segments(Says(*[[[LOOP]]] * 4), passes.REFINE)
    assert (mark.text, mark.words, mark.mark) == ("", (), "unclear")
    assert (mark.start_ms, mark.end_ms) == (5_000, 7_000)


def test_a_moment_that_never_gets_sound_is_not_missed() -> None:
    assert segments(Says(*[[[LOOP]]] * 4), passes.REFINE, seconds=0.5) == [[]]


def test_the_rescorer_chooses_among_the_sound_candidates() -> None:
    class Last:
        def choose(self, candidates: Sequence[Candidate]) -> int:
            assert NOISE not in candidates
            return len(candidates) - 1

        def hotwords(self, candidates: Sequence[Candidate], language: str) -> str:
            return ""

    rules = PassRules(passes.REFINE.first, rescorer=Last())
    ((segment,),) = segments(Says([[GOOD, BETTER, NOISE]]), rules)
    assert segment.text == BETTER.text


def test_windows_in_which_a_term_may_have_been_misheard_are_heard_again_told_of_it() -> None:
    misheard = Candidate("I live at Helsten.", -0.3, 0.0, 1.0, tokens="misheard")
    mended = Candidate("I live at Helstone.", -0.1, 0.0, 1.0, tokens="mended")
    model = Says([[GOOD], [misheard], [SILENCE]], [[mended]])
    rules = PassRules(passes.REFINE.first, rescorer=Rescorer([("Helstone", 3.0)]))
    heard = segments(model, rules, windows=3)
    assert [[one.text for one in window] for window in heard] == [[GOOD.text], [mended.text], []]
    assert [(windows, options.hotwords) for windows, options in model.asked] == [
        (3, ""),
        (1, "Helstone"),
    ]
