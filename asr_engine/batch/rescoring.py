"""Choosing among candidates by a glossary and, where there is one, a language model.

What the decoder thinks of a candidate is one opinion. A phrase of the glossary that a candidate
holds adds to it, in natural logarithms like the decoder's own, and so does what a language model
thinks.

A term that no candidate holds, but whose sound is near to something that they do hold, is told to
the decoder in a prompt (`hotwords`). Prompted, a decoder likes everything better, so the
candidates it then offers win by their phrases alone, and only where a phrase stands for something
that sounded like it.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Final

import numpy as np

from asr_engine.batch.sounds import nearness, sound_of
from asr_engine.ports import Candidate, LanguageModel
from asr_engine.results import Word
from asr_engine.spoken import spoken_units

BONUS: Final = 0.5
"""Natural logarithm that one point of weight is worth: how much less probable the decoder may find
a text with the phrase."""
LANGUAGE_MODEL: Final = 0.2
"""Share of the language model's opinion."""
MAX_HOTWORDS: Final = 4
"""Terms in one prompt: each makes the decoder expect something that was hardly said."""
NEAR: Final = 88.0
"""Of 100: a term this near to what was heard is told to the decoder."""
NEAR_IN_DOUBT: Final = 70.0
"""The same where the candidates do not agree: what is not understood is often a name."""
NEAR_ENOUGH: Final = 60.0
"""A phrase may stand for what the first candidate has in its place."""
SAME: Final = 99.0
"""A term that sounds the same is near enough, however short it is."""
LONG_SOUND: Final = 8
NEARER: Final = 3.0
"""How much nearer a term must be for each letter that its sound has less than LONG_SOUND: short
terms are near to everything."""
MAX_RUN: Final = 6
"""Words, or signs, that one term may have been heard as."""
OTHER_CHANGES: Final = 0.25
"""Share of the other words that may differ from the first candidate's."""


@dataclass(frozen=True, slots=True)
class _Phrase:
    text: str
    weight: float
    units: tuple[str, ...]
    sound: str


@dataclass(frozen=True, slots=True)
class _Place:
    """A phrase in a candidate's units, [start, end)."""

    phrase: _Phrase
    start: int
    end: int


class Rescorer:
    """A glossary's phrases, each with a weight of 0 to 10, and a language model or None."""

    def __init__(
        self, phrases: Sequence[tuple[str, float]], lm: LanguageModel | None = None
    ) -> None:
        self._lm = lm
        self._phrases: list[_Phrase] = []
        self._by_unit: defaultdict[str, list[_Phrase]] = defaultdict(list)
        for text, weight in phrases:
            if (units := tuple(spoken_units(text))) and weight > 0:
                phrase = _Phrase(text, weight, units, sound_of(text))
                self._phrases.append(phrase)
                self._by_unit[units[0]].append(phrase)

    def choose(self, candidates: Sequence[Candidate]) -> int:
        """Index of the best one; the first must be the most probable that was heard unprompted."""
        first = candidates[0]
        heard = spoken_units(first.text)
        ranks = [self._rank(candidate, first, heard) for candidate in candidates]
        return max(range(len(candidates)), key=lambda index: ranks[index])

    def hotwords(self, candidates: Sequence[Candidate], language: str) -> str:
        """Terms that none of the candidates holds, the nearest in sound first; "" for none."""
        heard = [spoken_units(candidate.text) for candidate in candidates]
        held = {place.phrase for units in heard for place in self._places(units)}
        is_latin = all(_is_latin(units) for units in heard)
        asked = [
            phrase
            for phrase in self._phrases
            # A name in another script is not written into a sentence without it.
            if phrase not in held and (_is_latin(phrase.units) or not is_latin)
        ]
        runs = _runs(heard)
        if not asked or not runs:
            return ""
        near = nearness([phrase.sound for phrase in asked], list(runs))
        shortness = [NEARER * max(0, LONG_SOUND - len(phrase.sound)) for phrase in asked]
        wanted = np.minimum(SAME, np.add.outer(shortness, list(runs.values())))
        margins = (near - wanted).max(axis=1)
        nearest = sorted(range(len(asked)), key=lambda index: -margins[index])[:MAX_HOTWORDS]
        separator = "、" if language in {"zh", "yue", "ja"} else ", "
        return separator.join(asked[index].text for index in nearest if margins[index] >= 0)

    def spelt(self, words: Sequence[Word]) -> list[Word]:
        """The same words; those of a phrase with capitals in the phrase's own, whatever the decoder
        made of it. A phrase without any is no name, and may begin a sentence."""
        spelt = list(words)
        units = [spoken_units(word.text) for word in words]
        for start, first in enumerate(units):
            for phrase in self._by_unit.get(first[0], ()) if len(first) == 1 else ():
                parts = phrase.text.split()
                here = units[start : start + len(parts)]
                if here == [[unit] for unit in phrase.units] and phrase.text != phrase.text.lower():
                    for index, part in enumerate(parts, start):
                        spelt[index] = replace(spelt[index], text=_as(spelt[index].text, part))
        return spelt

    def _rank(
        self, candidate: Candidate, first: Candidate, heard: list[str]
    ) -> tuple[float, bool, int, float]:
        """Greater is better: a natural logarithm, then the first, then fewer other changes, then
        what the decoder thinks."""
        units = spoken_units(candidate.text)
        places = list(self._places(units))
        changed = _other_changes(heard, units, places)
        if changed is None:
            return float("-inf"), False, 0, 0.0
        mean = min(candidate.mean_log_probability, first.mean_log_probability)
        if self._lm is not None:
            # A mean as well: otherwise the text with the fewest words would win.
            mean += LANGUAGE_MODEL * self._lm.log_probability(units) / max(1, len(units))
        score = mean * max(1, len(heard)) + sum(BONUS * place.phrase.weight for place in places)
        return score, candidate is first, -changed, candidate.mean_log_probability

    def _places(self, units: Sequence[str]) -> Iterator[_Place]:
        for start, unit in enumerate(units):
            for phrase in self._by_unit.get(unit, ()):
                end = start + len(phrase.units)
                if tuple(units[start:end]) == phrase.units:
                    yield _Place(phrase, start, end)


def _other_changes(heard: list[str], units: list[str], places: Sequence[_Place]) -> int | None:
    """Words of `units` that differ from `heard` where no phrase is.

    None where a phrase does not sound like what `heard` has in its place, or too much differs.
    """
    edits = SequenceMatcher(None, heard, units, autojunk=False).get_opcodes()
    changed = 0
    for kind, old_start, old_end, start, end in edits:
        if kind != "equal" and not any(_meet(place, start, end) for place in places):
            changed += max(old_end - old_start, end - start)
    if changed > max(2.0, OTHER_CHANGES * len(heard)):
        return None
    for place in places:
        here = [edit for edit in edits if _meet(place, edit[3], edit[4])]
        if all(kind == "equal" for kind, *_ in here):
            continue
        # A word more on each side: an edit may begin or end inside of what sounded like the phrase.
        around = heard[max(0, _old(here[0], place.start) - 1) : _old(here[-1], place.end) + 1]
        runs = [sound_of("".join(around[i:j])) for i, j in _spans(len(around))]
        if not runs or nearness([place.phrase.sound], runs).max() < NEAR_ENOUGH:
            return None
    return changed


def _meet(place: _Place, start: int, end: int) -> bool:
    return place.start < end and place.end > start


def _old(edit: tuple[str, int, int, int, int], position: int) -> int:
    """Where in the old text a position of the new one lies, which is in `edit` or at its edge."""
    kind, old_start, old_end, start, end = edit
    if kind == "equal":
        return old_start + min(max(position, start), end) - start
    return old_end if position >= end else old_start


def _as(text: str, spelling: str) -> str:
    """`text` with the letters of `spelling`, which differ in case at most; its own punctuation."""
    known = "".join(sign for sign in spelling if sign.isalnum())
    letters = [place for place, sign in enumerate(text) if sign.isalnum()]
    if len(letters) != len(known):
        return text
    signs = list(text)
    for place, sign in zip(letters, known, strict=True):
        signs[place] = sign
    return "".join(signs)


def _is_latin(units: Sequence[str]) -> bool:
    """Every letter is of the Latin script."""
    return all(
        unicodedata.name(sign, "LATIN").startswith(("LATIN", "DIGIT"))
        for unit in units
        for sign in unit
        if sign.isalnum()
    )


def _spans(length: int) -> Iterator[tuple[int, int]]:
    for start in range(length):
        for end in range(start + 1, min(length, start + MAX_RUN) + 1):
            yield start, end


def _runs(heard: Sequence[list[str]]) -> dict[str, float]:
    """Sounds of the runs of words that the candidates have, and how near a term must be to each."""
    runs: dict[str, float] = {}
    counts = Counter(unit for units in heard for unit in set(units))
    for units in heard:
        for start, end in _spans(len(units)):
            is_doubted = any(counts[unit] < len(heard) for unit in units[start:end])
            asked = NEAR_IN_DOUBT if is_doubted else NEAR
            sound = sound_of("".join(units[start:end]))
            if sound:
                runs[sound] = min(asked, runs.get(sound, asked))
    return runs
