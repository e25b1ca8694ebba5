"""One pass over encoded windows: decode, judge, choose, time the words, hear on in holes.

Draft and refine are the same steps under different rules. The refine pass hears again what the
draft is in doubt about, from the same encoder output, and keeps the times of a text that stays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from asr_engine.audio import SAMPLE_RATE
from asr_engine.batch import guards
from asr_engine.batch.segments import segments_of, unclear_segments, with_marks
from asr_engine.batch.unheard import go_on_from, holes_in
from asr_engine.ports import BatchModel, Candidate, DecodeOptions, Onward, Rescorer, Window
from asr_engine.results import Segment, Word, join_words
from asr_engine.spoken import spoken_units

DOUBTFUL: Final = 0.5
"""A word less probable than this may be another."""
DOUBTED_SHARE: Final = 0.05
"""A text with more doubtful words than this is worth hearing again. Measured on short recordings:
a long look at those alone makes no more errors than one at all, for half the work."""

SPARSE_SAMPLES: Final = 20 * SAMPLE_RATE
"""A window up to this length holds so few words that its encoder costs a CPU more than a long look
at it: it is always heard again."""

LOOKS_ON: Final = 6
"""Places in a window from which it is heard on."""

ECHO_WORDS: Final = 3
"""People do say two words twice."""

Place = tuple[object, int]
"""An encoder output, and the number of a window in it."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PassRules:
    """How a pass decodes, and how again where no candidate of a window is sound."""

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
class Piece:
    """A window in its language, and where its encoder output is."""

    window: Window
    place: Place
    language: str


@dataclass(frozen=True, slots=True)
class Hearing:
    """What was last heard in a piece: nothing, words on its window's clock, or unclear speech."""

    piece: Piece
    candidate: Candidate | None = None
    words: Sequence[Segment] = ()
    is_unclear: bool = False

    @property
    def all_words(self) -> list[Word]:
        return [word for segment in self.words for word in segment.words]

    @property
    def has_holes(self) -> bool:
        """Whether its words leave out speech."""
        return bool(self.words) and bool(holes_in(self.piece.window, self.all_words))

    def go_on_from(self, vain: Collection[int]) -> Onward | None:
        """Where to hear on, but for the samples in `vain`."""
        return go_on_from(self.piece.window, self.all_words, vain) if self.words else None

    def segments(self) -> Iterator[Segment]:
        """On the recording's clock, sorted; marks where speech has no words."""
        window = self.piece.window
        if self.words:
            marks = [
                mark
                for hole in holes_in(window, self.all_words)
                for mark in unclear_segments(window, hole.start, hole.end)
            ]
            yield from with_marks(segments_of(window, self.words), marks)
        elif self.is_unclear:
            yield from unclear_segments(window, 0, len(window.samples))


@dataclass(frozen=True, slots=True)
class Listener:
    """A model that is called batch by batch; `check` is called in between, and may raise."""

    model: BatchModel
    check: Callable[[], None] = lambda: None

    def encode(self, windows: Sequence[Window]) -> list[Place]:
        """Places that may be gathered with one another."""
        places: list[Place] = []
        longest = max((len(window.samples) for window in windows), default=0)
        for batch in self._batches(windows):
            encoded = self.model.encode(batch, room_samples=longest)
            places += [(encoded, index) for index in range(len(batch))]
        return places

    def language_scores(
        self, windows: Sequence[Window], places: Sequence[Place]
    ) -> list[dict[str, float]]:
        scores = []
        for batch in self._batches(list(zip(windows, places, strict=True))):
            encoded = self.model.gather([place for _, place in batch])
            scores += self.model.language_scores([window for window, _ in batch], encoded)
        return scores

    def decode(self, pieces: Sequence[Piece], options: DecodeOptions) -> list[list[Candidate]]:
        heard: list[list[Candidate]] = []
        for batch in self._batches(pieces):
            heard += self.model.decode(
                [piece.window for piece in batch],
                self.model.gather([piece.place for piece in batch]),
                languages=[piece.language for piece in batch],
                options=options,
            )
        return heard

    def decode_onward(
        self, pieces: Sequence[Piece], onwards: Sequence[Onward], options: DecodeOptions
    ) -> list[list[Candidate]]:
        heard: list[list[Candidate]] = []
        for batch in self._batches(list(zip(pieces, onwards, strict=True))):
            heard += self.model.decode_onward(
                [piece.window for piece, _ in batch],
                self.model.gather([piece.place for piece, _ in batch]),
                [onward for _, onward in batch],
                languages=[piece.language for piece, _ in batch],
                options=options,
            )
        return heard

    def time_words(
        self, pieces: Sequence[Piece], candidates: Sequence[Candidate]
    ) -> list[list[Segment]]:
        timed: list[list[Segment]] = []
        for batch in self._batches(list(zip(pieces, candidates, strict=True))):
            timed += self.model.time_words(
                [piece.window for piece, _ in batch],
                self.model.gather([piece.place for piece, _ in batch]),
                [candidate for _, candidate in batch],
                languages=[piece.language for piece, _ in batch],
            )
        return timed

    def _batches(self, items: Sequence[T]) -> Iterator[Sequence[T]]:
        size = self.model.batch_windows
        for start in range(0, len(items), size):
            yield items[start : start + size]
            self.check()


def draft(listener: Listener, pieces: Sequence[Piece], *, is_all: bool) -> list[Hearing]:
    """What each piece says by a quick look. Where that `is_all` that will be heard, holes are heard
    at once; else that is the refine pass's."""
    heard = _hear(listener, [Hearing(piece) for piece in pieces], DRAFT)
    return _fill(listener, heard, DRAFT) if is_all else heard


def refine(
    listener: Listener, hearings: Sequence[Hearing], *, rescorer: Rescorer | None
) -> list[Hearing]:
    """The same after those in doubt have been heard again by a long look, and holes."""
    rules = replace(REFINE, rescorer=rescorer)
    refined = list(hearings)
    terms = {
        index for index, hearing in enumerate(hearings) if _sounds_like_a_term(hearing, rescorer)
    }
    doubted = _doubted(hearings, listener.model.refine_share, terms)
    # What a draft with a hole does say is mostly right: it is heard on, which takes less.
    again = [index for index in doubted if index in terms or not hearings[index].has_holes]
    heard = _hear(listener, [hearings[index] for index in again], rules)
    for index, hearing in zip(again, heard, strict=True):
        refined[index] = hearing
    return _spelt(_fill(listener, refined, rules), rescorer)


def hear_well(
    listener: Listener, pieces: Sequence[Piece], *, rescorer: Rescorer | None
) -> list[Hearing]:
    """What each piece says by a long look, without a draft."""
    rules = replace(REFINE, rescorer=rescorer)
    heard = _hear(listener, [Hearing(piece) for piece in pieces], rules)
    return _spelt(_fill(listener, heard, rules), rescorer)


def _spelt(hearings: Sequence[Hearing], rescorer: Rescorer | None) -> list[Hearing]:
    """The same, names as they are known."""
    if rescorer is None:
        return list(hearings)
    return [
        replace(
            hearing,
            words=[
                replace(segment, words=words, text=join_words(words))
                for segment in hearing.words
                for words in [tuple(rescorer.spelt(segment.words))]
            ],
        )
        for hearing in hearings
    ]


def _doubted(hearings: Sequence[Hearing], share: float, terms: Collection[int]) -> list[int]:
    """Indices of the hearings to hear again: all where `share` is 1. `terms` are those of hearings
    that sound like a term.

    Else the most doubtful ones, as long as all that is heard again is at most `share` of the
    audio, but at least one. What holds few words, has none or misses some, or sounds like a term,
    is heard again whatever it costs; a term takes nobody's turn.
    """
    if share >= 1:
        return list(range(len(hearings)))
    words = [hearing.all_words for hearing in hearings]
    chosen = {
        index
        for index, hearing in enumerate(hearings)
        if not words[index]
        or len(hearing.piece.window.samples) <= SPARSE_SAMPLES
        or hearing.has_holes
        or index in terms
    }
    doubts = {
        index: sum((word.confidence or 0.0) < DOUBTFUL for word in spoken) / len(spoken)
        for index, spoken in enumerate(words)
        if index not in chosen
    }
    lengths = [len(hearing.piece.window.samples) for hearing in hearings]
    left = share * sum(lengths) - sum(lengths[index] for index in chosen if index not in terms)
    for index in sorted(doubts, key=lambda index: -doubts[index]):
        if doubts[index] > DOUBTED_SHARE and (not chosen or lengths[index] <= left):
            chosen.add(index)
            left -= lengths[index]
    return sorted(chosen)


def _sounds_like_a_term(hearing: Hearing, rescorer: Rescorer | None) -> bool:
    if rescorer is None or hearing.candidate is None:
        return False
    return bool(rescorer.hotwords([hearing.candidate], hearing.piece.language))


def _fill(listener: Listener, before: Sequence[Hearing], rules: PassRules) -> list[Hearing]:
    """The same after those with holes have been heard on, wherever that yields more words."""
    filled = list(before)
    vain: list[set[int]] = [set() for _ in before]
    for _ in range(LOOKS_ON):
        places = {
            index: onward
            for index, hearing in enumerate(filled)
            if (onward := hearing.go_on_from(vain[index])) is not None
        }
        heard = _hear_on(
            listener, [filled[index] for index in places], list(places.values()), rules
        )
        for (index, onward), hearing in zip(places.items(), heard, strict=True):
            if len(hearing.all_words) > len(filled[index].all_words):
                filled[index] = hearing
            else:
                vain[index].add(onward.sample)
    return filled


def _hear_on(
    listener: Listener,
    before: Sequence[Hearing],
    onwards: Sequence[Onward],
    rules: PassRules,
) -> list[Hearing]:
    """The hearings with what follows `onwards`; those as they were, or without words, of which
    nothing follows. A greedy look finds something now and then where a beam does not."""
    new: list[list[Candidate]] = [[] for _ in before]
    for options in dict.fromkeys((rules.first, DRAFT.first)):
        vain = [index for index, candidates in enumerate(new) if not candidates]
        heard = listener.decode_onward(
            [before[index].piece for index in vain], [onwards[index] for index in vain], options
        )
        for index, candidates in zip(vain, heard, strict=True):
            known = join_words(onwards[index].before)
            new[index] = [one for one in candidates if guards.goes_on(known, one)]
    judged = [
        _judge(hearing, candidates, (), rules.rescorer)
        for hearing, candidates in zip(before, new, strict=True)
    ]
    timed = _timed(listener, before, judged)
    return [
        _without_echo(hearing, len(onward.before))
        for hearing, onward in zip(timed, onwards, strict=True)
    ]


def _without_echo(hearing: Hearing, known: int) -> Hearing:
    """The hearing without the last of its `known` words where what follows begins with them again:
    heard on, a decoder begins a little before the place that it was told."""
    if len(hearing.words) != 1:
        return hearing
    (whole,) = hearing.words
    units = [spoken_units(word.text) for word in whole.words]
    for count in range(min(known, len(units) - known), ECHO_WORDS - 1, -1):
        if units[known - count : known] == units[known : known + count]:
            words = (*whole.words[: known - count], *whole.words[known:])
            return replace(hearing, words=[replace(whole, text=join_words(words), words=words)])
    return hearing


def _hear(listener: Listener, before: Sequence[Hearing], rules: PassRules) -> list[Hearing]:
    pieces = [hearing.piece for hearing in before]
    heard = listener.decode(pieces, rules.first)
    _retry(listener, before, rules, heard)
    prompted = _prompted(listener, pieces, rules.rescorer, heard)
    judged = [
        _judge(hearing, _with_draft(hearing, candidates), with_terms, rules.rescorer)
        for hearing, candidates, with_terms in zip(before, heard, prompted, strict=True)
    ]
    return _timed(listener, before, judged)


def _with_draft(before: Hearing, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """The candidates, and where there are any, what was heard before: a beam that has found its
    share of texts stops, and the rest of a sentence may be in none of them."""
    if before.candidate is None or not candidates:
        return candidates
    return [*candidates, before.candidate]


def _timed(
    listener: Listener, before: Sequence[Hearing], judged: Sequence[Hearing]
) -> list[Hearing]:
    """The judged hearings with words; one that is as it was before keeps those it has."""
    hearings = list(judged)
    changed = [
        index
        for index, hearing in enumerate(hearings)
        if hearing.candidate is not None and hearing is not before[index]
    ]
    chosen = [candidate for index in changed if (candidate := hearings[index].candidate)]
    timed = listener.time_words([hearings[index].piece for index in changed], chosen)
    for index, words in zip(changed, timed, strict=True):
        hearings[index] = replace(hearings[index], words=words)
    return hearings


def _retry(
    listener: Listener,
    before: Sequence[Hearing],
    rules: PassRules,
    heard: list[list[Candidate]],
) -> None:
    """Decode what failed again; the new candidates go before the old. What was heard soundly before
    is better than what is drawn by chance."""
    for options in rules.retries:
        failed = [
            index
            for index, candidates in enumerate(heard)
            if _has_failed(candidates)
            and not (options.temperature and before[index].candidate is not None)
        ]
        again = listener.decode([before[index].piece for index in failed], options)
        for index, candidates in zip(failed, again, strict=True):
            heard[index] = candidates + heard[index]


def _prompted(
    listener: Listener,
    pieces: Sequence[Piece],
    rescorer: Rescorer | None,
    heard: Sequence[Sequence[Candidate]],
) -> list[list[Candidate]]:
    """What is heard with terms in mind that no candidate holds, where one may have been said."""
    prompted: list[list[Candidate]] = [[] for _ in pieces]
    if rescorer is None:
        return prompted
    for index, candidates in enumerate(heard):
        sound = [candidate for candidate in candidates if guards.is_sound(candidate)]
        terms = rescorer.hotwords(sound, pieces[index].language) if sound else ""
        if terms:
            options = replace(REFINE.first, hotwords=terms)
            (prompted[index],) = listener.decode([pieces[index]], options)
    return prompted


def _has_failed(candidates: Sequence[Candidate]) -> bool:
    """Somebody spoke, and nothing sound was heard."""
    if not candidates or guards.is_silence(candidates[0]):
        return False
    return not any(guards.is_sound(candidate) for candidate in candidates)


def _judge(
    before: Hearing,
    candidates: Sequence[Candidate],
    prompted: Sequence[Candidate],
    rescorer: Rescorer | None,
) -> Hearing:
    """The hearing, still without words unless it says what was heard before."""
    nothing = replace(before, candidate=None, words=(), is_unclear=False)
    if not candidates or guards.is_silence(candidates[0]):
        return nothing
    sound = [candidate for candidate in candidates if guards.is_sound(candidate)]
    if not sound:
        return replace(nothing, is_unclear=guards.is_speech(candidates[0]))
    sound = guards.best_first(sound)
    sound += [candidate for candidate in prompted if guards.is_sound(candidate)]
    best = sound[rescorer.choose(sound) if rescorer else 0]
    if before.candidate is not None and before.candidate.tokens == best.tokens:
        return before
    return replace(nothing, candidate=best)
