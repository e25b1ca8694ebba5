"""A recording to segments, group by group.

A group is a few windows: encoded once, decoded by the draft pass, yielded with a checkpoint from
which anybody can do the rest. A refine pass decodes the same encoder output before it is dropped,
so memory is bounded by the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from asr_engine.audio import FloatSamples, samples_to_ms
from asr_engine.batch.decode import BLOCK_SAMPLES, decode_source, open_audio, skip_to
from asr_engine.batch.segments import segments_of
from asr_engine.batch.unheard import count_words, halves_around_hole
from asr_engine.batch.windows import find_windows, resume_from
from asr_engine.errors import CancelledError, UnsupportedLanguageError
from asr_engine.ports import BatchModel, DecodeOptions, SpeechFinder, Window
from asr_engine.results import LanguageGuess, Segment

MAX_GROUP_WINDOWS: Final = 32
MIN_GROUP_WINDOWS: Final = 4
"""Enough speech to tell its language from, where a batch is smaller."""
GROUP_BATCHES: Final = 2
"""Batches of a group; the first group is a single batch, so that text appears soon."""
LISTEN_BLOCKS: Final = 30
"""Blocks (seconds) of audio read between two looks at `should_stop`, where nobody speaks."""
DRAFT: Final = DecodeOptions(beam_size=1)

_Batch = tuple[list[Window], object]
"""Windows that are encoded together, and their encoder output."""


@dataclass(frozen=True, slots=True)
class GroupResult:
    """What one group yielded. `checkpoint` is JSON-able and says where the next group begins.

    `audio_total_ms` is what the container declares until the end is reached, then what was
    decoded. `language` is None as long as nobody has spoken.
    """

    segments: tuple[Segment, ...]
    checkpoint: dict[str, Any]
    audio_done_ms: int
    audio_total_ms: int
    language: LanguageGuess | None


@dataclass(frozen=True, slots=True)
class _Progress:
    """A checkpoint. Groups are cut by `windows_done`, so that they are the same after a restart."""

    resume_sample: int = 0
    windows_done: int = 0
    language: str | None = None
    probability: float = 0.0

    @property
    def guess(self) -> LanguageGuess | None:
        return LanguageGuess(self.language, self.probability) if self.language else None


def transcribe(
    path: Path,
    *,
    model: BatchModel,
    finder: SpeechFinder,
    language: str | None,
    checkpoint: dict[str, Any] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[GroupResult]:
    """Draft of a recording: at least one group, also where nobody speaks.

    Segments are sorted and 0 <= start < end <= duration over all groups. `language` None detects
    it on the first group and keeps it. `should_stop` is asked between batches and while silence is
    read; it may take its time (to let live streams go first). Raises CancelledError when it says
    so, AudioError, UnsupportedLanguageError.
    """
    progress = _Progress(**checkpoint) if checkpoint else _Progress(language=language)
    if language:
        if language not in model.languages:
            raise UnsupportedLanguageError(language)
        progress = replace(progress, language=language, probability=1.0)
    first_sample = resume_from(progress.resume_sample, window_samples=finder.window_samples)
    with open_audio(path) as source:
        reader = _Reader(skip_to(decode_source(source), first_sample), first_sample, should_stop)
        windows = find_windows(
            reader.blocks(),
            finder=finder,
            first_sample=first_sample,
            from_sample=progress.resume_sample,
        )
        declared_ms = int((source.declared_s or 0.0) * 1000)
        while True:
            size = _group_size(model, progress)
            group = list(islice(windows, size))
            encoded: list[_Batch] = []
            for batch in _batches(group, model.batch_windows):
                encoded.append((batch, model.encode(batch)))
                reader.check()
            segments: list[Segment] = []
            if encoded:
                guess = progress.guess or _detect_language(model, encoded)
                for batch, output in encoded:
                    segments += _draft(model, batch, output, guess.language)
                    reader.check()
                progress = _Progress(
                    resume_sample=group[-1].end_sample,
                    windows_done=progress.windows_done + len(group),
                    language=guess.language,
                    probability=guess.probability,
                )
            is_last = len(group) < size
            heard_ms = samples_to_ms(reader.end_sample)
            yield GroupResult(
                segments=tuple(segments),
                checkpoint=asdict(progress),
                audio_done_ms=heard_ms if is_last else samples_to_ms(progress.resume_sample),
                audio_total_ms=heard_ms if is_last else max(declared_ms, heard_ms),
                language=progress.guess,
            )
            if is_last:
                return


def _group_size(model: BatchModel, progress: _Progress) -> int:
    batches = GROUP_BATCHES if progress.windows_done else 1
    return min(MAX_GROUP_WINDOWS, max(MIN_GROUP_WINDOWS, batches * model.batch_windows))


def _batches(windows: list[Window], size: int) -> Iterable[list[Window]]:
    return (windows[start : start + size] for start in range(0, len(windows), size))


def _detect_language(model: BatchModel, group: Sequence[_Batch]) -> LanguageGuess:
    """The language of most speech in a group: the batches' guesses, weighted by their length."""
    scores: dict[str, float] = {}
    total = sum(len(window.samples) for windows, _ in group for window in windows)
    for windows, encoded in group:
        guess = model.detect_language(windows, encoded)
        share = guess.probability * sum(len(window.samples) for window in windows) / total
        scores[guess.language] = scores.get(guess.language, 0.0) + share
    best = max(scores, key=lambda language: scores[language])
    return LanguageGuess(best, min(1.0, scores[best]))


def _draft(
    model: BatchModel, windows: list[Window], encoded: object, language: str
) -> list[Segment]:
    """The draft of one batch, decoded from its encoder output."""
    heard = model.decode(windows, encoded, language=language, options=DRAFT)
    return [
        segment
        for window, texts in zip(windows, heard, strict=True)
        for part, part_texts in _without_holes(model, window, texts, language)
        for segment in segments_of(part, part_texts)
    ]


def _without_holes(
    model: BatchModel, window: Window, heard: list[Segment], language: str
) -> list[tuple[Window, list[Segment]]]:
    """`window` as it was heard, or its halves where those yield more words."""
    halves = halves_around_hole(window, heard)
    if halves is None:
        return [(window, heard)]
    again = model.decode(halves, model.encode(halves), language=language, options=DRAFT)
    if sum(map(count_words, again)) <= count_words(heard):
        return [(window, heard)]
    return list(zip(halves, again, strict=True))


class _Reader:
    """Passes blocks on, counts them, and looks at `should_stop` every half a minute of audio."""

    def __init__(
        self, blocks: Iterator[FloatSamples], first_sample: int, should_stop: Callable[[], bool]
    ) -> None:
        self._blocks = blocks
        self._should_stop = should_stop
        self.end_sample = first_sample

    def check(self) -> None:
        if self._should_stop():
            raise CancelledError

    def blocks(self) -> Iterator[FloatSamples]:
        self.check()
        checked = self.end_sample
        for block in self._blocks:
            self.end_sample += len(block)
            if self.end_sample - checked >= LISTEN_BLOCKS * BLOCK_SAMPLES:
                self.check()
                checked = self.end_sample
            yield block
