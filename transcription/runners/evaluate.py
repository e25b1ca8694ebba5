"""Accuracy and speed over a manifest, by the batch road or the live one. No server, no database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from asr_engine import registry
from asr_engine.batch import two_pass
from asr_engine.batch.channels import survey
from asr_engine.batch.two_pass import Pass, TwoPassOptions
from asr_engine.config import EngineSettings
from asr_engine.errors import AudioError
from asr_engine.evaluation import Entry, FileScore, read_manifest, report
from asr_engine.ports import BatchModel, Rescorer, SpeechFinder
from asr_engine.tracks import plan_of
from transcription.runners.evaluate_live import transcribe_live

SEVERAL_LANGUAGES: Final = "mul"
"""What a manifest says where they mix."""


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
    last_pass: Pass = Pass.REFINED,
    rescorer: Rescorer | None = None,
    on_scored: Callable[[FileScore], None] = lambda score: None,
) -> dict[str, Any]:
    """Transcribe and score every entry; `on_scored` hears of each.

    `mode_ms` is the live road's latency mode, 0 the model's default; `last_pass` the batch road's
    pass whose text is scored, and `rescorer` has a say in its refine pass. A recording that cannot
    be decoded is scored as all deleted, with its problem. Loading the models does not count as
    work, nor does choosing a recording's track, which is done when it is uploaded. Raises
    ModelError, UnsupportedModeError.
    """
    scores = []
    for score in _scores(
        entries,
        road=road,
        settings=settings,
        mode_ms=mode_ms,
        last_pass=last_pass,
        rescorer=rescorer,
    ):
        on_scored(score)
        scores.append(score)
    if road is Road.LIVE:
        return report(scores, road=road.value, **_live_delays(scores))
    result = report(
        scores,
        road=road.value,
        **{"pass": last_pass.value, "seconds_per_minute": _seconds_per_minute(scores)},
    )
    for folder, row in result["by_folder"].items():
        row["seconds_per_minute"] = _seconds_per_minute(
            [score for score in scores if score.entry.folder == folder]
        )
    return result


def _scores(
    entries: Iterable[Entry],
    *,
    road: Road,
    settings: EngineSettings,
    mode_ms: int,
    last_pass: Pass,
    rescorer: Rescorer | None,
) -> Iterator[FileScore]:
    if road is Road.LIVE:
        return (_score_live(entry, settings, mode_ms) for entry in entries)
    model, finder = registry.batch_model(settings), registry.speech_finder(settings)
    return (_score_batch(entry, model, finder, last_pass, rescorer) for entry in entries)


def spoken_language(entry: Entry) -> str | None:
    """The language to ask for: a person would choose it, unless languages mix."""
    return None if entry.language == SEVERAL_LANGUAGES else entry.language


def _score_batch(
    entry: Entry,
    model: BatchModel,
    finder: SpeechFinder,
    last_pass: Pass,
    rescorer: Rescorer | None,
) -> FileScore:
    texts: list[str] = []
    audio_ms = 0
    pass_s: dict[str, float] = dict.fromkeys(Pass, 0.0)
    try:
        options = TwoPassOptions(
            language=spoken_language(entry),
            mixes_languages=entry.language == SEVERAL_LANGUAGES,
            is_draft_only=last_pass is Pass.DRAFT,
            rescorer=rescorer,
            plan=plan_of(survey(entry.path, finder=finder)),
        )
        begun = time.perf_counter()
        for group in two_pass.transcribe(entry.path, model=model, finder=finder, options=options):
            now = time.perf_counter()
            pass_s[group.pass_] += now - begun
            begun = now
            audio_ms = group.audio_done_ms
            if group.pass_ is last_pass:
                texts += [segment.text for segment in group.segments]
    except AudioError as error:
        return FileScore(entry, "", 0.0, 0.0, problem=error.sentence)
    extra = {"pass_s": {name: round(seconds, 3) for name, seconds in pass_s.items()}}
    return FileScore(entry, " ".join(texts), audio_ms / 1000, sum(pass_s.values()), extra=extra)


def _seconds_per_minute(scores: Sequence[FileScore]) -> dict[str, float]:
    """Seconds of work for a minute of audio, by pass; the draft's include decoding and encoding."""
    minutes = sum(score.audio_s for score in scores) / 60
    if not minutes:
        return {}
    spent = [score.extra["pass_s"] for score in scores if score.extra]
    return {name: round(sum(times[name] for times in spent) / minutes, 3) for name in Pass}


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
