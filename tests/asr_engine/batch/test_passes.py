"""A pass judges what was decoded: what is not sound is decoded again, dropped, or marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asr_engine.audio import SAMPLE_RATE, samples_to_ms
from asr_engine.backends.scripted import ScriptedBatchModel, encode_blocks
from asr_engine.batch.passes import Hearing, Listener, Piece, draft, hear_well, refine
from asr_engine.ports import Candidate, DecodeOptions, Onward, Window, WindowSpan
from asr_engine.results import Segment, Word, join_words

GOOD = Candidate("I am here.", -0.3, 0.0, 1.0, tokens="good")
BETTER = Candidate("I am there.", -0.2, 0.0, 1.0, tokens="better")
LOOP = Candidate("I am here. " * 40, -0.1, 0.0, 9.0, tokens="loop")
NOISE = Candidate("Grwl.", -1.7, 0.1, 1.0, tokens="noise")
SILENCE = Candidate("Thank you.", -1.2, 0.9, 1.0, tokens="silence")
UNSURE = 0.3


class Says(ScriptedBatchModel):
    """Answers each call of `decode` with the next of its candidates for the windows."""

    batch_windows = 8

    def __init__(self, *answers: list[list[Candidate]], confidence: Sequence[float] = ()) -> None:
        self._answers = list(answers)
        self._confidence = list(confidence)
        self.asked: list[tuple[int, DecodeOptions]] = []
        self.timed: list[str] = []

    def decode(
        self,
        windows: Sequence[Window],
        encoded: object,
        *,
        languages: Sequence[str],
        options: DecodeOptions,
    ) -> list[list[Candidate]]:
        self.asked.append((len(windows), options))
        return self._answers.pop(0)[: len(windows)]

    def time_words(
        self, windows: Sequence[Window], encoded: object, candidates: Any, *, languages: Any
    ) -> list[list[Segment]]:
        self.timed += [candidate.text for candidate in candidates]
        timed = []
        for window, candidate in zip(windows, candidates, strict=True):
            confidence = self._confidence.pop(0) if self._confidence else 1.0
            start_ms = samples_to_ms(window.start_sample)
            word = Word(candidate.text, start_ms + 400, start_ms + 1900, confidence)
            timed.append([Segment(word.start_ms, word.end_ms, candidate.text, (word,))])
        return timed


class PassesOver(ScriptedBatchModel):
    """Hears only `heard` of the words of each window, and of those it is told to go on from.

    Where it goes on, it hears `more` of what is left.
    """

    def __init__(self, heard: Sequence[slice], more: int = 1000) -> None:
        self._heard, self._more = heard, more
        self.asked: list[int] = []
        self.onwards: list[Onward] = []

    def decode(
        self, windows: Sequence[Window], encoded: Any, *, languages: Any, options: DecodeOptions
    ) -> list[list[Candidate]]:
        self.asked.append(options.beam_size)
        found = []
        for words in encoded:
            some = tuple(word for part in self._heard for word in words[part])
            found.append([Candidate(join_words(some), -0.1, 0.0, 1.0, tokens=some)])
        return found

    def decode_onward(
        self, windows: Any, encoded: Any, onwards: Sequence[Onward], *, languages: Any, options: Any
    ) -> list[list[Candidate]]:
        self.onwards += onwards
        found = super().decode_onward(
            windows, encoded, onwards, languages=languages, options=options
        )
        return [
            [
                replace(candidate, tokens=candidate.tokens[: len(onward.before) + self._more])
                for candidate in candidates
            ]
            for candidates, onward in zip(found, onwards, strict=True)
        ]


def pieces(
    listener: Listener, windows: int = 1, seconds: float = 2.0, then_silent: float = 0.0
) -> list[Piece]:
    samples = encode_blocks(range(round(seconds * 10)))
    spans = (WindowSpan(0, 5 * SAMPLE_RATE, 0, len(samples)),)
    samples = np.pad(samples, (0, round(then_silent * SAMPLE_RATE)))
    framed = [Window(5 * SAMPLE_RATE, samples, spans)] * windows
    places = listener.encode(framed)
    return [Piece(window, place, "en") for window, place in zip(framed, places, strict=True)]


def segments(hearings: Sequence[Hearing]) -> list[list[Segment]]:
    return [list(hearing.segments()) for hearing in hearings]


def texts(hearings: Sequence[Hearing]) -> list[str]:
    return [segment.text for hearing in hearings for segment in hearing.segments()]


def drafted(model: Says, **how: Any) -> list[Hearing]:
    listener = Listener(model)
    return draft(listener, pieces(listener, **how), is_all=True)


def first_look(listener: Listener, windows: int, **how: float) -> list[Hearing]:
    """A draft that will be refined."""
    return draft(listener, pieces(listener, windows, **how), is_all=False)


def long_first_look(listener: Listener, windows: int) -> list[Hearing]:
    """The same of windows that are too long to be heard again without a reason."""
    return first_look(listener, windows, then_silent=25.0)


def heard_well(model: Says, **how: Any) -> list[Hearing]:
    listener = Listener(model)
    rescorer = how.pop("rescorer", None)
    return hear_well(listener, pieces(listener, **how), rescorer=rescorer)


EITHER = pytest.mark.parametrize("hear", [drafted, heard_well])


@EITHER
def test_text_where_nobody_spoke_is_left_out_without_a_mark(hear: Any) -> None:
    assert segments(hear(Says([[SILENCE]]))) == [[]]


@EITHER
def test_a_loop_is_decoded_again_without_repetition(hear: Any) -> None:
    model = Says([[LOOP]], [[GOOD]])
    assert texts(hear(model)) == [GOOD.text]
    assert model.asked[1][1].avoids_repetition


@EITHER
def test_only_windows_that_failed_are_decoded_again(hear: Any) -> None:
    model = Says([[GOOD], [LOOP], [GOOD]], [[BETTER]])
    assert texts(hear(model, windows=3)) == [GOOD.text, BETTER.text, GOOD.text]
    assert [windows for windows, _ in model.asked] == [3, 1]


def test_a_sound_candidate_further_down_is_taken_without_a_retry() -> None:
    assert texts(heard_well(Says([[LOOP, GOOD]]))) == [GOOD.text]


def test_retries_rise_in_temperature() -> None:
    model = Says(*[[[NOISE]]] * 4)
    heard_well(model)
    temperatures = [options.temperature for _, options in model.asked]
    assert temperatures == sorted(temperatures)
    assert temperatures[-1] > 0


def test_what_never_gets_sound_is_marked_and_not_written_down() -> None:
    ((mark,),) = segments(heard_well(Says(*[[[LOOP]]] * 4)))
    assert (mark.text, mark.words, mark.mark) == ("", (), "unclear")
    assert (mark.start_ms, mark.end_ms) == (5_000, 7_000)


def test_noise_that_loops_is_not_marked_as_speech() -> None:
    hum = replace(LOOP, no_speech_probability=0.8)
    assert segments(heard_well(Says(*[[[hum]]] * 4))) == [[]]


def test_a_moment_that_never_gets_sound_is_not_missed() -> None:
    assert segments(heard_well(Says(*[[[LOOP]]] * 4), seconds=0.5)) == [[]]


def test_a_refined_text_stands_in_the_place_of_its_draft() -> None:
    model = Says([[GOOD], [GOOD]], [[GOOD], [BETTER]])
    listener = Listener(model)
    first = first_look(listener, windows=2)
    assert texts(refine(listener, first, rescorer=None)) == [GOOD.text, BETTER.text]


def test_a_draft_that_is_more_probable_stays() -> None:
    model = Says([[BETTER]], [[GOOD]])
    listener = Listener(model)
    assert texts(refine(listener, first_look(listener, windows=1), rescorer=None)) == [BETTER.text]


def test_a_sentence_that_a_beam_broke_off_is_whole() -> None:
    broken = replace(BETTER, text="I am", tokens="broken")
    model = Says([[GOOD]], [[broken]])
    listener = Listener(model)
    assert texts(refine(listener, first_look(listener, windows=1), rescorer=None)) == [GOOD.text]


def test_a_text_that_stays_keeps_its_times() -> None:
    model = Says([[GOOD], [GOOD]], [[GOOD], [BETTER]])
    listener = Listener(model)
    refine(listener, first_look(listener, windows=2), rescorer=None)
    assert model.timed == [GOOD.text, GOOD.text, BETTER.text]


class Frugal(Says):
    """May hear a quarter of the words again."""

    refine_share = 0.25


def test_a_frugal_refine_pass_hears_the_most_doubtful_again() -> None:
    model = Frugal([[GOOD]] * 4, [[BETTER]], confidence=[0.9, UNSURE, 0.9, 0.9])
    listener = Listener(model)
    refined = refine(listener, long_first_look(listener, windows=4), rescorer=None)
    assert texts(refined) == [GOOD.text, BETTER.text, GOOD.text, GOOD.text]


def test_a_frugal_refine_pass_hears_all_short_windows_again() -> None:
    model = Frugal([[GOOD]] * 4, [[BETTER]] * 4)
    listener = Listener(model)
    refined = refine(listener, first_look(listener, windows=4), rescorer=None)
    assert texts(refined) == [BETTER.text] * 4


def test_a_frugal_refine_pass_trusts_what_is_beyond_doubt() -> None:
    model = Frugal([[GOOD]] * 4)
    listener = Listener(model)
    refined = refine(listener, long_first_look(listener, windows=4), rescorer=None)
    assert texts(refined) == [GOOD.text] * 4


def test_a_frugal_refine_pass_hears_what_has_no_words_again() -> None:
    model = Frugal([[GOOD], [LOOP]], [[LOOP]], [[BETTER]])
    listener = Listener(model)
    first = long_first_look(listener, windows=2)
    assert [segment.mark for hearing in first for segment in hearing.segments()][1] == "unclear"
    assert texts(refine(listener, first, rescorer=None)) == [GOOD.text, BETTER.text]


@settings(deadline=None, max_examples=50)
@given(confidences=st.lists(st.floats(0, 1), min_size=1, max_size=8), share=st.floats(0.01, 0.99))
def test_a_refine_pass_keeps_to_its_share(confidences: list[float], share: float) -> None:
    """One window where that is more than the share; never one that is beyond doubt."""
    count = len(confidences)
    model = Says([[GOOD]] * count, [[BETTER]] * count, confidence=confidences)
    model.refine_share = share
    listener = Listener(model)
    refine(listener, long_first_look(listener, windows=count), rescorer=None)
    again = sum(windows for windows, _ in model.asked[1:])
    doubtful = sum(confidence < 0.5 for confidence in confidences)
    assert again <= max(1, share * count)
    allowed = {max(1, int(share * count + rounding)) for rounding in (-1e-9, 1e-9)}
    assert again in {min(doubtful, windows) for windows in allowed}


class Prefers:
    """A rescorer that wants one text, and asks for its terms where it is not there."""

    def __init__(self, text: str, hotwords: str = "") -> None:
        self._text, self._hotwords = text, hotwords

    def choose(self, candidates: Sequence[Candidate]) -> int:
        assert NOISE not in candidates
        found = [index for index, one in enumerate(candidates) if one.text == self._text]
        return found[0] if found else 0

    def hotwords(self, candidates: Sequence[Candidate], language: str) -> str:
        return "" if any(one.text == self._text for one in candidates) else self._hotwords

    def spelt(self, words: Sequence[Word]) -> list[Word]:
        return list(words)


def test_the_rescorer_chooses_among_the_sound_candidates() -> None:
    model = Says([[GOOD, BETTER, NOISE]])
    assert texts(heard_well(model, rescorer=Prefers(BETTER.text))) == [BETTER.text]


def test_a_term_that_no_candidate_holds_is_told_to_the_decoder() -> None:
    model = Says([[GOOD]], [[BETTER]])
    assert texts(heard_well(model, rescorer=Prefers(BETTER.text, "there"))) == [BETTER.text]
    assert [options.hotwords for _, options in model.asked] == ["", "there"]


def test_names_are_spelt_as_they_are_known_also_in_what_is_not_heard_again() -> None:
    class Spells(Prefers):
        def spelt(self, words: Sequence[Word]) -> list[Word]:
            return [replace(word, text=word.text.replace("here", "Here")) for word in words]

    model = Frugal([[GOOD]] * 2)
    listener = Listener(model)
    drafted_twice = long_first_look(listener, windows=2)
    refined = refine(listener, drafted_twice, rescorer=Spells(GOOD.text))
    assert texts(drafted_twice) == ["I am here."] * 2
    assert texts(refined) == ["I am Here."] * 2


def test_a_frugal_refine_pass_hears_what_sounds_like_a_term_again() -> None:
    model = Frugal([[GOOD], [BETTER]], [[GOOD]], [[BETTER]])
    listener = Listener(model)
    rescorer = Prefers(BETTER.text, "there")
    refined = refine(listener, long_first_look(listener, windows=2), rescorer=rescorer)
    assert texts(refined) == [BETTER.text, BETTER.text]


def test_work_may_stop_after_each_batch() -> None:
    class OneByOne(Says):
        batch_windows = 1

    class StopError(Exception):
        pass

    model = OneByOne([[GOOD]], [[GOOD]], [[GOOD]])

    def check() -> None:
        if len(model.asked) == 2:
            raise StopError

    listener = Listener(model, check)
    with pytest.raises(StopError):
        first_look(listener, windows=3)
    assert len(model.asked) == 2


def words_of(hearings: Sequence[Hearing]) -> list[str]:
    return [word.text for hearing in hearings for word in hearing.all_words]


def everything(**how: Any) -> list[str]:
    return words_of(drafted(ScriptedBatchModel(), **how))


@pytest.mark.parametrize(
    "heard", [[slice(0, 40)], [slice(60, 100)], [slice(0, 20), slice(60, 100)]]
)
def test_speech_that_was_passed_over_is_heard_on_from_where_it_was_lost(
    heard: list[slice],
) -> None:
    model = PassesOver(heard)
    listener = Listener(model)
    first = draft(listener, pieces(listener, seconds=10), is_all=False)
    refined = refine(listener, first, rescorer=None)
    assert words_of(refined) == everything(seconds=10)
    (onward,) = model.onwards
    before = heard[0].stop if heard[0].start == 0 else 0
    assert [word.text for word in onward.before] == words_of(first)[:before]
    assert onward.sample == max(0, before * SAMPLE_RATE // 10 - SAMPLE_RATE // 5)
    assert model.asked == [1], "what was heard is not heard again"


def test_a_draft_that_is_all_is_heard_on_at_once() -> None:
    model = PassesOver([slice(0, 40)])
    assert words_of(drafted(model, seconds=10)) == everything(seconds=10)


def test_a_long_look_without_a_draft_is_heard_on_as_well() -> None:
    listener = Listener(PassesOver([slice(0, 40)]))
    heard = hear_well(listener, pieces(listener, seconds=10), rescorer=None)
    assert words_of(heard) == everything(seconds=10)


def test_it_is_heard_on_from_one_place_after_another_but_not_for_ever() -> None:
    model = PassesOver([slice(0, 10)], more=5)
    heard = drafted(model, seconds=10)
    assert words_of(heard) == everything(seconds=10)[:40]
    assert len(model.onwards) == 6


def test_what_is_heard_on_must_be_more_than_was_heard() -> None:
    model = PassesOver([slice(60, 100)], more=30)
    heard = drafted(model, seconds=10)
    assert words_of(heard) == everything(seconds=10)[60:]
    assert len(model.onwards) == 1


@pytest.mark.parametrize("then", [[], [LOOP], [NOISE]], ids=["nothing", "loop", "noise"])
def test_what_is_heard_on_must_be_sound(then: list[Candidate]) -> None:
    class Unsound(PassesOver):
        def decode_onward(self, windows: Any, *arguments: Any, **how: Any) -> list[list[Candidate]]:
            return [then for _ in windows]

    assert words_of(drafted(Unsound([slice(0, 40)]), seconds=10)) == everything(seconds=10)[:40]


def in_spans(listener: Listener, lengths: Sequence[float]) -> list[Piece]:
    """One window of spans of that many seconds, which lie a minute apart in the recording."""
    samples = encode_blocks(range(round(sum(lengths) * 10)))
    ends = [round(sum(lengths[: number + 1]) * SAMPLE_RATE) for number in range(len(lengths))]
    starts = [0, *ends[:-1]]
    spans = [
        WindowSpan(start, start + number * 60 * SAMPLE_RATE, start, end)
        for number, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]
    windows = [Window(0, samples, tuple(spans))]
    return [Piece(windows[0], *listener.encode(windows), "en")]


def test_where_nothing_is_heard_it_is_tried_from_the_next_speech() -> None:
    class HardOfHearing(PassesOver):
        """Hears nothing from within the second span."""

        def decode_onward(
            self, windows: Any, encoded: Any, onwards: Sequence[Onward], **how: Any
        ) -> list[list[Candidate]]:
            heard = super().decode_onward(windows, encoded, onwards, **how)
            is_deaf = 2 * SAMPLE_RATE <= onwards[0].sample < 6.7 * SAMPLE_RATE
            return [[]] if is_deaf else heard

    model = HardOfHearing([slice(0, 30)])
    listener = Listener(model)
    first = draft(listener, in_spans(listener, [3, 4, 8]), is_all=False)
    refined = refine(listener, first, rescorer=None)
    # By a beam and greedily, then from the third span.
    assert [onward.sample / SAMPLE_RATE for onward in model.onwards] == [2.8, 2.8, 6.8]
    assert words_of(refined)[30:] == everything(seconds=15)[68:]


def test_words_that_are_heard_again_where_it_is_heard_on_stand_once() -> None:
    class Echoes(PassesOver):
        """Begins with the last three words that it was told."""

        def decode_onward(
            self, windows: Any, encoded: Any, onwards: Sequence[Onward], **how: Any
        ) -> list[list[Candidate]]:
            ((candidate,),) = super().decode_onward(windows, encoded, onwards, **how)
            known = len(onwards[0].before)
            words = candidate.tokens
            words = (*words[:known], *words[known - 3 : known], *words[known:])
            return [[replace(candidate, text=join_words(words), tokens=words)]]

    heard = drafted(Echoes([slice(0, 40)]), seconds=10)
    assert words_of(heard) == everything(seconds=10)


def test_speech_that_stays_without_words_is_marked_where_it_is() -> None:
    class Deaf(PassesOver):
        def decode_onward(self, windows: Any, *arguments: Any, **how: Any) -> list[list[Candidate]]:
            return [[] for _ in windows]

    listener = Listener(Deaf([slice(0, 30), slice(70, 80)]))
    first = draft(listener, in_spans(listener, [3, 4, 8]), is_all=False)
    (found,) = segments(refine(listener, first, rescorer=None))
    assert [(one.start_ms, one.end_ms) for one in found if one.mark] == [
        (63_000, 67_000),
        (128_000, 135_000),
    ]
    assert "".join(one.text and "w" for one in found) == "ww"
    assert found == sorted(found, key=lambda one: one.start_ms)


def test_a_long_look_that_goes_round_leaves_what_the_draft_said() -> None:
    model = Says([[GOOD]], [[LOOP]], [[LOOP]])
    listener = Listener(model)
    refined = refine(listener, first_look(listener, windows=1), rescorer=None)
    assert texts(refined) == [GOOD.text]
    assert [options.temperature for _, options in model.asked] == [0, 0, 0]


def test_a_pause_is_no_hole() -> None:
    model = PassesOver([slice(0, 100)])
    drafted(model, seconds=10, then_silent=10.0)
    assert model.onwards == []
