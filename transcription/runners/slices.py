"""What is done in one slice of a job: its two passes over the recording, then who spoke.

Each pass of each group is stored with the checkpoint from which another worker goes on. Who has the
job, and how it ends, is `batch_job`'s.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final

from asr_engine.batch import two_pass
from asr_engine.batch.rescoring import Rescorer
from asr_engine.batch.two_pass import GroupResult, Pass, TwoPassOptions
from asr_engine.diarisation.port import SpeakerDiariser
from asr_engine.ports import BatchModel, LanguageModel, SpeechFinder
from asr_engine.scripts import written
from asr_engine.tracks import ChannelMode, ChannelPlan
from transcription.models import Job, RevisionKind
from transcription.runners import speakers
from transcription.runners.speakers import Found
from transcription.services import jobs, tracks
from transcription.services.chinese import script_of
from transcription.services.glossary import phrases_for
from transcription.services.job_queue import Claim
from transcription.services.jobs import SPEAKERS, Progress
from transcription.services.speakers import voices_of

DRAFT_SHARE: Final = 0.8
"""Of the work on a group, so that a job's progress goes on while its text is refined."""


@dataclass(frozen=True, slots=True)
class Models:
    """What the worker keeps loaded."""

    model: BatchModel
    finder: SpeechFinder
    lm: LanguageModel | None = None


def work_on(
    claim: Claim,
    *,
    models: Models,
    load_diariser: Callable[[], SpeakerDiariser | None],
    slice_s: float,
    should_stop: Callable[[], bool],
) -> Found | None:
    """Work until the slice is over; None while there is more to do."""
    begun = time.monotonic()
    plan = _plan(claim.job)
    if claim.job.stage != SPEAKERS:
        if not _transcribe(
            claim, models=models, plan=plan, slice_s=slice_s, should_stop=should_stop
        ):
            return None
        if not speakers.are_wanted(claim, plan):
            return Found()
    return speakers.find_speakers(
        claim,
        load=load_diariser,
        model_name=models.model.name,
        plan=plan,
        slice_s=slice_s - (time.monotonic() - begun),
        should_stop=should_stop,
    )


def _transcribe(
    claim: Claim,
    *,
    models: Models,
    plan: ChannelPlan,
    slice_s: float,
    should_stop: Callable[[], bool],
) -> bool:
    """Do groups until the slice is over; True when all audio has been heard."""
    job = claim.job
    script = script_of(job.recording)
    done_ms = job.audio_done_ms
    begun = group_begun = time.monotonic()
    for group in two_pass.transcribe(
        job.recording.source_path,
        model=models.model,
        finder=models.finder,
        options=TwoPassOptions(
            language=job.language or None,
            mixes_languages=job.recording.mixes_languages,
            is_draft_only=job.is_draft_only,
            rescorer=_rescorer(job, models.lm),
            plan=plan,
        ),
        checkpoint=job.checkpoint.get("passes"),
        should_stop=should_stop,
    ):
        now = time.monotonic()
        is_whole = job.is_draft_only or group.pass_ is Pass.REFINED
        jobs.store_progress(
            claim=claim,
            progress=Progress(
                kind=RevisionKind(group.pass_.value),
                segments=written(group.segments, script),
                checkpoint={"passes": group.checkpoint, "plan": asdict(plan)},
                audio_done_ms=group.audio_done_ms if is_whole else _half_way(done_ms, group),
                audio_total_ms=group.audio_total_ms,
                language=group.language,
                model_name=models.model.name,
                voices=voices_of(plan, job.recording),
                work_seconds=now - group_begun,
            ),
        )
        group_begun = now
        if not is_whole:  # to stop here would cost the group's encoder output
            continue
        done_ms = group.audio_done_ms
        # At the end there is nothing to give back, only to finish.
        if now - begun >= slice_s and done_ms < group.audio_total_ms:
            return False
    return True


def _plan(job: Job) -> ChannelPlan:
    """The plan that the job began with, else that of the track that was chosen for it."""
    if begun := job.checkpoint.get("plan"):
        return ChannelPlan(begun["track"], ChannelMode(begun["mode"]))
    return tracks.plan_for(job.recording, chosen=job.track)


def _rescorer(job: Job, lm: LanguageModel | None) -> Rescorer | None:
    if job.is_draft_only:
        return None
    phrases = phrases_for(job.recording)
    return Rescorer(phrases, lm) if phrases or lm else None


def _half_way(done_ms: int, group: GroupResult) -> int:
    """The position that a job shows when a group, begun at `done_ms`, has only its draft."""
    return done_ms + round(DRAFT_SHARE * (group.audio_done_ms - done_ms))
