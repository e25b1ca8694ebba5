"""A recording to segments, group by group, in two passes.

A group is a few windows: encoded once, decoded by the draft pass, yielded; then decoded from the
same encoder output by the refine pass, yielded; then dropped, so memory is bounded by the group.
Each result has a checkpoint from which anybody can do the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self

from asr_engine.audio import FloatSamples, samples_to_ms
from asr_engine.batch import passes
from asr_engine.batch.ahead import ReadAhead
from asr_engine.batch.channels import decode_planned
from asr_engine.batch.decode import BLOCK_SAMPLES, open_audio, skip_to
from asr_engine.batch.language import (
    language_of_each,
    languages_but_for,
    speech_samples,
    weigh,
)
from asr_engine.batch.passes import Hearing, Listener, Piece
from asr_engine.batch.windows import SpeechRules, find_windows, resume_from, take_group
from asr_engine.errors import CancelledError, UnsupportedLanguageError
from asr_engine.ports import BatchModel, Rescorer, SpeechFinder, Window
from asr_engine.results import LanguageGuess, Segment
from asr_engine.tracks import ChannelPlan

FIRST_GROUP_WINDOWS: Final = 4
"""Text appears soon, and it is enough speech to tell its language from."""
AHEAD_WINDOWS: Final = 32
"""Windows read ahead beside a model with a device of its own: 16 minutes of speech, 110 MB."""
MIXED_RULES: Final = SpeechRules(max_window_ms=10_000, max_pause_ms=300)
"""Where languages mix: a window is read in one language, and what is in another gets lost. People
change their language behind a pause."""
LISTEN_BLOCKS: Final = 30
"""Blocks (seconds) of audio read between two looks at `should_stop`, where nobody speaks."""


class Pass(StrEnum):
    DRAFT = "draft"
    REFINED = "refined"


@dataclass(frozen=True, slots=True)
class TwoPassOptions:
    """What is asked for.

    `language` None detects it on the first group; windows that are certainly in another are read in
    that, and the recording's language is that of most speech so far. Where languages mix, each
    window is read in its own, and `language` is for those that are not sure of it. `rescorer`
    chooses among the refine pass's candidates. `plan` says which audio track is heard, and how; a
    job that goes on must have the plan that it began with.
    """

    language: str | None = None
    mixes_languages: bool = False
    is_draft_only: bool = False
    rescorer: Rescorer | None = None
    plan: ChannelPlan = field(default_factory=ChannelPlan)


@dataclass(frozen=True, slots=True)
class GroupResult:
    """What a pass over one group yielded. `checkpoint` is JSON-able and says what comes next.

    `audio_done_ms` is the end of the group. `audio_total_ms` is what the container declares until
    the end is reached, then what was decoded. `language` is None as long as nobody has spoken.
    """

    pass_: Pass
    segments: tuple[Segment, ...]
    checkpoint: dict[str, Any]
    audio_done_ms: int
    audio_total_ms: int
    language: LanguageGuess | None


@dataclass(frozen=True, slots=True)
class _Progress:
    """A checkpoint. Groups are cut by `windows_done`, so that they are the same after a restart.

    `resume_samples` says where each channel goes on. `is_drafted`: the draft of the group that
    begins here has been yielded. `spoken_samples` is the speech of each language so far.
    """

    resume_samples: list[int] = field(default_factory=list)
    windows_done: int = 0
    language: str | None = None
    probability: float = 0.0
    is_drafted: bool = False
    spoken_samples: dict[str, int] = field(default_factory=dict)

    @property
    def guess(self) -> LanguageGuess | None:
        return LanguageGuess(self.language, self.probability) if self.language else None


def transcribe(
    path: Path,
    *,
    model: BatchModel,
    finder: SpeechFinder,
    options: TwoPassOptions,
    checkpoint: dict[str, Any] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[GroupResult]:
    """Draft and, unless told otherwise, refined text of each group in turn; at least one group,
    also where nobody speaks.

    Segments of one pass are sorted and 0 <= start < end <= duration over all groups. `should_stop`
    is asked between batches and while silence is read; it may take its time (to let live streams go
    first). Raises CancelledError when it says so, AudioError, UnsupportedLanguageError.
    """
    progress = _Progress(**checkpoint) if checkpoint else _Progress()
    if options.language:
        if options.language not in model.languages:
            raise UnsupportedLanguageError(options.language)
        progress = replace(progress, language=options.language, probability=1.0)
    with _Reading(path, model, finder, options, progress, should_stop) as reading:
        listener = Listener(model, reading.check)
        while True:
            size = _group_size(model, progress)
            group = take_group(reading.windows, size)
            pieces, guess, scores = _encode(listener, group, progress.guess, options)
            spoken = _spoken(progress.spoken_samples, pieces)
            main = guess if options.language else _main_language(guess, spoken, pieces, scores)
            after = replace(
                progress,
                resume_samples=list(group[-1].resume_samples) if group else progress.resume_samples,
                windows_done=progress.windows_done + len(group),
                language=main.language if main else None,
                probability=main.probability if main else 0.0,
                is_drafted=False,
                spoken_samples=spoken,
            )
            is_last = len(group) < size
            heard_ms = samples_to_ms(reading.end_sample)
            done_ms = samples_to_ms(min(after.resume_samples, default=0))
            result = GroupResult(
                pass_=Pass.DRAFT,
                segments=(),
                checkpoint=asdict(after),
                audio_done_ms=heard_ms if is_last else min(done_ms, heard_ms),
                audio_total_ms=heard_ms if is_last else max(reading.declared_ms, heard_ms),
                language=main,
            )
            # A draft that was yielded before an interruption is made again for what it found out.
            drafts = passes.draft(listener, pieces, is_all=options.is_draft_only)
            if options.is_draft_only:
                yield replace(result, segments=_segments(drafts))
            else:
                if not progress.is_drafted:
                    drafted = replace(
                        progress,
                        language=guess.language if guess else None,
                        probability=guess.probability if guess else 0.0,
                        is_drafted=True,
                    )
                    yield replace(result, segments=_segments(drafts), checkpoint=asdict(drafted))
                refined = passes.refine(listener, drafts, rescorer=options.rescorer)
                yield replace(result, pass_=Pass.REFINED, segments=_segments(refined))
            if is_last:
                return
            progress = after


def refine_windows(
    model: BatchModel, windows: Sequence[Window], options: TwoPassOptions
) -> list[list[Segment]]:
    """Refined segments of each window by itself, without a draft; windows need not follow another.

    Languages are told as in `transcribe`, over these windows. Raises UnsupportedLanguageError.
    """
    if options.language and options.language not in model.languages:
        raise UnsupportedLanguageError(options.language)
    known = LanguageGuess(options.language, 1.0) if options.language else None
    listener = Listener(model)
    pieces, *_ = _encode(listener, windows, known, options)
    heard = passes.hear_well(listener, pieces, rescorer=options.rescorer)
    return [list(_segments([hearing])) for hearing in heard]


def _group_size(model: BatchModel, progress: _Progress) -> int:
    return model.batch_windows if progress.windows_done else FIRST_GROUP_WINDOWS


def _encode(
    listener: Listener,
    windows: Sequence[Window],
    known: LanguageGuess | None,
    options: TwoPassOptions,
) -> tuple[list[Piece], LanguageGuess | None, list[dict[str, float]]]:
    """The windows encoded, each with its language; the language of most of them; and each one's
    scores, unless a person chose the language."""
    places = listener.encode(windows)
    if not windows:
        return [], known, []
    scores = []
    if options.language is None or options.mixes_languages:
        scores = listener.language_scores(windows, places)
    guess = known or weigh(windows, scores)
    if options.mixes_languages:
        languages = language_of_each(scores, otherwise=guess.language)
    elif options.language is None:
        languages = languages_but_for(windows, scores, main=guess.language)
    else:
        languages = [guess.language] * len(windows)
    pieces = [Piece(*piece) for piece in zip(windows, places, languages, strict=True)]
    return pieces, guess, scores


def _spoken(before: Mapping[str, int], pieces: Sequence[Piece]) -> dict[str, int]:
    """Samples of speech in each language, with that of `pieces`."""
    spoken = Counter(before)
    for piece in pieces:
        spoken[piece.language] += speech_samples(piece.window)
    return dict(spoken)


def _main_language(
    guess: LanguageGuess | None,
    spoken: Mapping[str, int],
    pieces: Sequence[Piece],
    scores: Sequence[dict[str, float]],
) -> LanguageGuess | None:
    """`guess`, unless more speech is in the language of some of `pieces` by now."""
    if guess is None:
        return None
    most = max(spoken, key=lambda language: spoken[language], default=guess.language)
    if spoken.get(most, 0) <= spoken.get(guess.language, 0):
        return guess
    of_it = [
        (piece.window, one)
        for piece, one in zip(pieces, scores, strict=True)
        if piece.language == most
    ]
    if not of_it:
        return guess
    windows, theirs = zip(*of_it, strict=True)
    return LanguageGuess(most, weigh(windows, theirs).probability)


def _segments(hearings: Sequence[Hearing]) -> tuple[Segment, ...]:
    segments = (segment for hearing in hearings for segment in hearing.segments())
    # Windows of two channels lie beside each other.
    return tuple(sorted(segments, key=lambda segment: (segment.start_ms, segment.end_ms)))


class _Reading:
    """The windows of a recording from a checkpoint on, read as they are asked for, or ahead.

    `check` looks at `should_stop`; while audio is read, it is looked at every half a minute of it.
    """

    def __init__(
        self,
        path: Path,
        model: BatchModel,
        finder: SpeechFinder,
        options: TwoPassOptions,
        progress: _Progress,
        should_stop: Callable[[], bool],
    ) -> None:
        self._path, self._plan = path, options.plan
        self._rules = MIXED_RULES if options.mixes_languages else SpeechRules()
        self._model, self._finder = model, finder
        self._should_stop = should_stop
        self._from_samples = progress.resume_samples
        self._resources = ExitStack()
        self.end_sample = resume_from(self._from_samples, window_samples=finder.window_samples)
        self.declared_ms = 0
        self.windows: Iterator[Window] = iter(())

    def __enter__(self) -> Self:
        with self._resources as resources:
            source = resources.enter_context(open_audio(self._path, track=self._plan.track))
            self.declared_ms = int((source.declared_s or 0.0) * 1000)
            blocks = skip_to(decode_planned(source, self._plan), self.end_sample)
            if self._model.works_beside:
                ahead: ReadAhead[Window] = ReadAhead(limit=AHEAD_WINDOWS, check=self.check)
                resources.callback(ahead.close)
                found = self._find(self._counted(blocks, ahead.must_go_on))
                ahead.start(map(self._model.prepare, found))
                self.windows = ahead
            else:
                self.windows = self._find(self._counted(blocks, self.check))
            self._resources = resources.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._resources.close()

    def check(self) -> None:
        if self._should_stop():
            raise CancelledError

    def _find(self, blocks: Iterator[FloatSamples]) -> Iterator[Window]:
        return find_windows(
            blocks,
            finder=self._finder,
            channels=self._plan.labels,
            first_sample=self.end_sample,
            from_samples=self._from_samples,
            rules=self._rules,
        )

    def _counted(
        self, blocks: Iterator[FloatSamples], check: Callable[[], None]
    ) -> Iterator[FloatSamples]:
        check()
        checked = self.end_sample
        for block in blocks:
            self.end_sample += block.shape[-1]
            if self.end_sample - checked >= LISTEN_BLOCKS * BLOCK_SAMPLES:
                check()
                checked = self.end_sample
            yield block
