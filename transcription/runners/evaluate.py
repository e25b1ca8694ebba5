"""Accuracy and speed over a manifest, by the batch road or the live one. No server, no database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from asr_engine import registry
from asr_engine.batch import two_pass
from asr_engine.batch.two_pass import TwoPassOptions
from asr_engine.config import EngineSettings
from asr_engine.errors import AudioError
from asr_engine.evaluation import Entry, FileScore, read_manifest, report
from asr_engine.ports import BatchModel, SpeechFinder
from transcription.runners.evaluate_live import transcribe_live


class Road(StrEnum):
    BATCH = "batch"
    LIVE = "live"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which entries of a manifest are scored; empty means any, `limit` 0 all."""

    folder: str = ""
    language: str = ""
    quality: str = "AB"
    limit: int = 0

    def entries(self, manifest: Path) -> list[Entry]:
        """Raises OSError, ValueError for a manifest that cannot be read."""
        chosen = [
            entry
            for entry in read_manifest(manifest)
            if entry.is_scored
            and (not self.folder or entry.folder == self.folder)
            and (not self.language or entry.language == self.language)
            and entry.quality in set(self.quality)
        ]
        return chosen[: self.limit or None]


def evaluate(
    entries: Iterable[Entry],
    *,
    road: Road,
    settings: EngineSettings,
    mode_ms: int = 0,
    on_scored: Callable[[FileScore], None] = lambda score: None,
) -> dict[str, Any]:
    """Transcribe and score every entry; `on_scored` hears of each.

    `mode_ms` is the live road's latency mode, 0 the model's default. A recording that cannot be
    decoded is scored as all deleted, with its problem. Loading the models does not count as work.
    Raises ModelError, UnsupportedModeError.
    """
    scores = []
    for score in _scores(entries, road=road, settings=settings, mode_ms=mode_ms):
        on_scored(score)
        scores.append(score)
    facts: dict[str, Any] = {"road": road.value}
    if road is Road.LIVE:
        facts |= _live_delays(scores)
    return report(scores, **facts)


def _scores(
    entries: Iterable[Entry], *, road: Road, settings: EngineSettings, mode_ms: int
) -> Iterator[FileScore]:
    if road is Road.LIVE:
        return (_score_live(entry, settings, mode_ms) for entry in entries)
    model, finder = registry.batch_model(settings), registry.speech_finder(settings)
    return (_score_batch(entry, model, finder) for entry in entries)


def spoken_language(entry: Entry) -> str | None:
    """The language to ask for: a person would choose it, unless languages mix."""
    return None if entry.language == "mul" else entry.language


def _score_batch(entry: Entry, model: BatchModel, finder: SpeechFinder) -> FileScore:
    begun = time.perf_counter()
    texts: list[str] = []
    audio_ms = 0
    try:
        for group in two_pass.transcribe(
            entry.path,
            model=model,
            finder=finder,
            options=TwoPassOptions(language=spoken_language(entry), is_draft_only=True),
        ):
            texts += [segment.text for segment in group.segments]
            audio_ms = group.audio_done_ms
    except AudioError as error:
        return FileScore(entry, "", 0.0, 0.0, problem=error.sentence)
    return FileScore(entry, " ".join(texts), audio_ms / 1000, time.perf_counter() - begun)


def _score_live(entry: Entry, settings: EngineSettings, mode_ms: int) -> FileScore:
    try:
        heard = transcribe_live(
            entry.path, language=spoken_language(entry), settings=settings, mode_ms=mode_ms
        )
    except AudioError as error:
        return FileScore(entry, "", 0.0, 0.0, problem=error.sentence)
    audio_s = heard.audio_ms / 1000
    return FileScore(
        entry,
        heard.text,
        audio_s,
        heard.rtf * audio_s,
        extra={
            "first_partial_ms": heard.first_partial_ms,
            "final_delays_ms": list(heard.final_delays_ms),
            "finalisation_delays_ms": list(heard.finalisation_delays_ms),
        },
    )


def _live_delays(scores: Iterable[FileScore]) -> dict[str, dict[str, int | None]]:
    """p50 and p95 of time to first partial, time to final and finalisation delay, in ms."""
    kept: dict[str, list[int]] = {"first_partial_ms": [], "final_ms": [], "finalisation_ms": []}
    for score in scores:
        extra = score.extra or {}
        if extra.get("first_partial_ms") is not None:
            kept["first_partial_ms"].append(extra["first_partial_ms"])
        kept["final_ms"] += extra.get("final_delays_ms", [])
        kept["finalisation_ms"] += extra.get("finalisation_delays_ms", [])
    return {
        name: {"p50": _percentile(values, 50), "p95": _percentile(values, 95)}
        for name, values in kept.items()
    }


def _percentile(values: list[int], percent: int) -> int | None:
    """The smallest value that at least `percent` of `values` do not exceed."""
    if not values:
        return None
    return sorted(values)[-(-len(values) * percent // 100) - 1]
