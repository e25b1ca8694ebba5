"""One pass over encoded windows: decode, judge, choose, time the words, hear holes again.

Draft and refine are the same steps under different rules. What the draft found out is reused by the
refine pass of the same encoder output: times of a text that stays, halves of a window with a hole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from asr_engine.batch import guards
from asr_engine.batch.segments import segments_of, unclear_segment
from asr_engine.batch.unheard import count_words, halves_around_hole
from asr_engine.ports import BatchModel, Candidate, DecodeOptions, Rescorer, Window
from asr_engine.results import Segment


@dataclass(frozen=True, slots=True)
class PassRules:
    """How a pass decodes, and again where no candidate of a window is sound."""

    first: DecodeOptions
    retries: tuple[DecodeOptions, ...] = ()
    rescorer: Rescorer | None = None


DRAFT: Final = PassRules(
    DecodeOptions(beam_size=1), (DecodeOptions(beam_size=5, avoids_repetition=True),)
)
REFINE: Final = PassRules(
    DecodeOptions(beam_size=5, candidates=5),
    (
        DecodeOptions(beam_size=5, candidates=5, avoids_repetition=True),
        DecodeOptions(temperature=0.4, candidates=5),
        DecodeOptions(temperature=0.8, candidates=5),
    ),
)


@dataclass(frozen=True, slots=True)
class Batch:
    """Windows that were encoded together, and the language of each."""

    windows: Sequence[Window]
    encoded: object
    languages: Sequence[str]


@dataclass(slots=True)
class Hearing:
    """What a pass made of one window; `words` on the window's clock.

    `halves` are the window in two, encoded, where a hole was looked into; `takes_halves` where
    they held more words.
    """

    window: Window
    candidate: Candidate | None
    words: list[Segment] = field(default_factory=list)
    is_unclear: bool = False
    halves: Batch | None = None
    takes_halves: bool = False
    half_hearings: list[Hearing] = field(default_factory=list)

    def segments(self) -> Iterator[Segment]:
        """On the recording's clock, sorted."""
        if self.takes_halves:
            for half in self.half_hearings:
                yield from half.segments()
        elif self.words:
            yield from segments_of(self.window, self.words)
        elif self.is_unclear:
            yield from unclear_segment(self.window)


def hear(
    model: BatchModel,
    batch: Batch,
    rules: PassRules,
    *,
    earlier: Sequence[Hearing] | None = None,
) -> list[Hearing]:
    """One hearing for each window. `earlier` are those of another pass over the same batch."""
    hearings = _hear_once(model, batch, rules, earlier)
    for index, hearing in enumerate(hearings):
        before = earlier[index] if earlier else None
        _look_into_hole(model, hearing, batch.languages[index], rules, before)
    return hearings


def _look_into_hole(
    model: BatchModel, hearing: Hearing, language: str, rules: PassRules, before: Hearing | None
) -> None:
    """Hear the window in halves where it has a hole; keep them if they yield more words."""
    if before is not None and before.halves is not None:
        if before.takes_halves:
            hearing.halves, hearing.takes_halves = before.halves, True
            hearing.half_hearings = _hear_once(model, before.halves, rules, before.half_hearings)
        return
    windows = halves_around_hole(hearing.window, hearing.words)
    if windows is None:
        return
    hearing.halves = Batch(windows, model.encode(windows), [language] * len(windows))
    halves = _hear_once(model, hearing.halves, rules, None)
    if sum(count_words(half.words) for half in halves) > count_words(hearing.words):
        hearing.half_hearings, hearing.takes_halves = halves, True


def _hear_once(
    model: BatchModel, batch: Batch, rules: PassRules, earlier: Sequence[Hearing] | None
) -> list[Hearing]:
    heard = model.decode(
        batch.windows, batch.encoded, languages=batch.languages, options=rules.first
    )
    _retry(model, batch, rules, heard)
    if rules.rescorer is not None:
        _tell_terms(model, batch, rules.first, rules.rescorer, heard)
    hearings = [
        _judge(window, candidates, rules)
        for window, candidates in zip(batch.windows, heard, strict=True)
    ]
    untimed = []
    for index, hearing in enumerate(hearings):
        before = earlier[index] if earlier else None
        if hearing.candidate is None:
            continue
        if before is not None and _says_the_same(before.candidate, hearing.candidate):
            hearing.words = before.words
        else:
            untimed.append(index)
    if untimed:
        part = _part(model, batch, untimed)
        chosen = [hearings[index].candidate for index in untimed]
        timed = model.time_words(part.windows, part.encoded, chosen, languages=part.languages)
        for index, words in zip(untimed, timed, strict=True):
            hearings[index].words = words
    return hearings


def _retry(model: BatchModel, batch: Batch, rules: PassRules, heard: list[list[Candidate]]) -> None:
    """Decode what failed again; the new candidates go before the old."""
    for options in rules.retries:
        failed = [index for index, candidates in enumerate(heard) if _has_failed(candidates)]
        if not failed:
            return
        part = _part(model, batch, failed)
        again = model.decode(part.windows, part.encoded, languages=part.languages, options=options)
        for index, candidates in zip(failed, again, strict=True):
            heard[index] = candidates + heard[index]


def _tell_terms(
    model: BatchModel,
    batch: Batch,
    options: DecodeOptions,
    rescorer: Rescorer,
    heard: list[list[Candidate]],
) -> None:
    """Decode windows in which a term may have been misheard again, told of it.

    What comes of it goes behind what was heard without.
    """
    for index, candidates in enumerate(heard):
        sound = [candidate for candidate in candidates if guards.is_sound(candidate)]
        if not sound or guards.is_silence(candidates[0]):
            continue
        terms = rescorer.hotwords(sound, batch.languages[index])
        if terms:
            part = _part(model, batch, [index])
            (told,) = model.decode(
                part.windows,
                part.encoded,
                languages=part.languages,
                options=replace(options, hotwords=terms),
            )
            heard[index] = candidates + told


def _has_failed(candidates: Sequence[Candidate]) -> bool:
    """Somebody spoke, and nothing sound was heard."""
    if not candidates or guards.is_silence(candidates[0]):
        return False
    return not any(guards.is_sound(candidate) for candidate in candidates)


def _judge(window: Window, candidates: Sequence[Candidate], rules: PassRules) -> Hearing:
    sound = [candidate for candidate in candidates if guards.is_sound(candidate)]
    if not candidates or guards.is_silence(candidates[0]):
        return Hearing(window, None)
    if not sound:
        return Hearing(window, None, is_unclear=True)
    return Hearing(window, sound[rules.rescorer.choose(sound) if rules.rescorer else 0])


def _says_the_same(before: Candidate | None, now: Candidate) -> bool:
    return before is not None and before.tokens == now.tokens


def _part(model: BatchModel, batch: Batch, indices: Sequence[int]) -> Batch:
    if len(indices) == len(batch.windows):
        return batch
    return Batch(
        [batch.windows[index] for index in indices],
        model.select(batch.encoded, indices),
        [batch.languages[index] for index in indices],
    )
