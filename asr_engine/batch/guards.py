"""Whether a candidate is what somebody said: rules over the decoder's own figures."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

from asr_engine.batch.segments import SENTENCE_ENDS
from asr_engine.ports import Candidate
from asr_engine.spoken import spoken_units

MAX_COMPRESSION: Final = 2.4
"""Text that packs better than this repeats itself (the threshold of Whisper's authors)."""
NO_SPEECH: Final = 0.6
LOW_LOG_PROBABILITY: Final = -1.0
"""Both must be passed for a window to count as silent (the rule of Whisper's authors)."""
MIN_LOG_PROBABILITY: Final = -1.5
"""Below it text is noise, whatever the no-speech probability says."""

LOOP_TIMES: Final = 5
LOOP_UNITS: Final = 15
"""A phrase said so often in a row, in so many words (or characters) together, is a decoder's loop:
people say a word five times, but not a sentence. It may be short beside what stands before it, so
that all of the text packs no better than other text."""

TWICE_UNITS: Final = 4
"""People do say three words twice."""

SAID_AGAIN: Final = 0.7
SAID_AGAIN_RUN: Final = 3
"""A text of which more than this share comes in runs of so many words (or characters) that were
said before it, says them again: a decoder does, that is told what was said and hears nothing."""


def is_silence(candidate: Candidate) -> bool:
    """Nobody spoke."""
    return not candidate.text or (
        not is_speech(candidate) and candidate.mean_log_probability < LOW_LOG_PROBABILITY
    )


def is_speech(candidate: Candidate) -> bool:
    """Somebody spoke, whatever was said: music and noise seldom pass for it."""
    return candidate.no_speech_probability <= NO_SPEECH


def is_loop(candidate: Candidate) -> bool:
    return candidate.compression_ratio > MAX_COMPRESSION or _goes_round(candidate.text)


def is_sound(candidate: Candidate) -> bool:
    """It may be written down."""
    return not (
        is_silence(candidate)
        or is_loop(candidate)
        or candidate.mean_log_probability < MIN_LOG_PROBABILITY
    )


def best_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The most probable first; before it one that goes on where it stops in the middle of a
    sentence, to the sentence's end: a beam likes short texts. What says twice what another one says
    once comes last."""
    ranked = sorted(candidates, key=lambda one: -one.mean_log_probability)
    said_once = [spoken_units(candidate.text) for candidate in ranked]
    ranked.sort(key=lambda one: said_twice(one.text) in said_once)
    first = ranked[0]
    if not _ends_a_sentence(first.text):
        said = spoken_units(first.text)
        for candidate in ranked[1:]:
            units = spoken_units(candidate.text)
            goes_on = len(units) > len(said) and units[: len(said)] == said
            if goes_on and _ends_a_sentence(candidate.text):
                return [candidate, *(other for other in ranked if other is not candidate)]
    return ranked


def goes_on(before: str, candidate: Candidate) -> bool:
    """Whether a candidate that begins with `before` goes on with something else, and is sure of it:
    what stands there already makes the whole sound."""
    is_sure = candidate.mean_log_probability >= LOW_LOG_PROBABILITY
    return is_sure and is_sound(candidate) and not says_again(before, candidate.text)


def says_again(before: str, text: str) -> bool:
    """Whether `text`, which begins with `before`, goes on with nothing but what stands there
    already."""
    said, whole = spoken_units(before), spoken_units(text)
    new = whole[len(said) :]
    runs = SequenceMatcher(None, said, new, autojunk=False).get_matching_blocks()
    least = min(SAID_AGAIN_RUN, len(new))
    return sum(run.size for run in runs if run.size >= least) >= SAID_AGAIN * len(new)


def said_twice(text: str) -> list[str] | None:
    """The words (or characters) that `text` says twice and that are all it says, or None: a decoder
    does so with a short utterance now and then."""
    units = spoken_units(text)
    half = len(units) // 2
    if half >= TWICE_UNITS and units == 2 * units[:half]:
        return units[:half]
    return None


def _ends_a_sentence(text: str) -> bool:
    return text.rstrip("\"'”’)]")[-1:] in SENTENCE_ENDS


def _goes_round(text: str) -> bool:
    """Whether a phrase follows itself LOOP_TIMES."""
    units = spoken_units(text)
    for length in range(1, len(units) // LOOP_TIMES + 1):
        # Each unit that is as the one a phrase before it goes on with a row of phrases.
        run = length
        for before, unit in zip(units, units[length:], strict=False):
            run = run + 1 if before == unit else length
            if run >= max(LOOP_UNITS, LOOP_TIMES * length):
                return True
    return False
