"""Diarisation error rate over a manifest's recordings that say who speaks when."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asr_engine.batch.decode import decode_audio
from asr_engine.diarisation.port import Hearing, SpeakerDiariser, Turn
from asr_engine.diarisation.scoring import COLLAR_MS, DiarisationScore, score_turns
from asr_engine.evaluation import Entry, read_manifest


@dataclass(frozen=True, slots=True)
class SpeakerScore:
    """Of one recording: speakers counted by the diariser, and with their number given."""

    file: str
    speakers: int
    found: int
    counted: DiarisationScore
    given: DiarisationScore
    audio_s: float
    work_s: float


def speaker_entries(manifest: Path, *, folder: str = "", limit: int = 0) -> list[Entry]:
    """Those with turns. Raises OSError, ValueError for a manifest that cannot be read."""
    chosen = [
        entry
        for entry in read_manifest(manifest)
        if entry.turns and (not folder or entry.folder == folder)
    ]
    return chosen[: limit or None]


def evaluate_speakers(
    entries: Iterable[Entry],
    *,
    diariser: SpeakerDiariser,
    on_scored: Callable[[SpeakerScore], None] = lambda score: None,
) -> dict[str, Any]:
    """Score every entry; `on_scored` hears of each. Raises AudioError."""
    scores = []
    for entry in entries:
        score = _score(entry, diariser)
        on_scored(score)
        scores.append(score)
    audio_s, work_s = sum(score.audio_s for score in scores), sum(score.work_s for score in scores)
    return {
        "road": "speakers",
        "diariser": diariser.name,
        "collar_ms": COLLAR_MS,
        "counted": _row([score.counted for score in scores]),
        "given": _row([score.given for score in scores]),
        "audio_s": round(audio_s, 1),
        "rtf": round(work_s / audio_s, 3) if audio_s else None,
        "files": [
            {
                "file": score.file,
                "speakers": score.speakers,
                "found": score.found,
                "counted": _row([score.counted]),
                "given": _row([score.given]),
            }
            for score in scores
        ],
    }


def _score(entry: Entry, diariser: SpeakerDiariser) -> SpeakerScore:
    reference = [
        Turn(round(1000 * start), round(1000 * end), who) for start, end, who in entry.turns
    ]
    speakers = len({turn.speaker for turn in reference})
    begun = time.perf_counter()
    hearing = Hearing()
    for _ in diariser.listen(hearing, decode_audio(entry.path)):
        pass
    counted = diariser.turns(hearing, speakers=None)
    work_s = time.perf_counter() - begun
    given = diariser.turns(hearing, speakers=speakers)
    return SpeakerScore(
        file=entry.file,
        speakers=speakers,
        found=len({turn.speaker for turn in counted}),
        counted=score_turns(reference, counted),
        given=score_turns(reference, given),
        audio_s=entry.seconds,
        work_s=work_s,
    )


def _row(scores: Iterable[DiarisationScore]) -> dict[str, float | int | None]:
    total = sum(scores, DiarisationScore())
    return {
        "der": None if total.rate is None else round(total.rate, 4),
        "missed_ms": total.missed_ms,
        "false_ms": total.false_ms,
        "confused_ms": total.confused_ms,
        "speech_ms": total.speech_ms,
    }
