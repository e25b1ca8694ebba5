"""Who spoke: the stage of a job that follows its passes, when the text is already complete.

What has been heard is stored with the job, so that another worker goes on from it. A recording
whose speakers cannot be told apart is finished all the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import structlog

from asr_engine.audio import samples_to_ms
from asr_engine.batch.channels import decode_planned
from asr_engine.batch.decode import open_audio, skip_to
from asr_engine.diarisation.port import Hearing, SpeakerDiariser
from asr_engine.diarisation.turns import assign
from asr_engine.errors import CancelledError, ModelError
from asr_engine.results import Segment
from asr_engine.tracks import ChannelMode, ChannelPlan
from transcription.services import jobs, transcripts
from transcription.services.job_queue import Claim
from transcription.services.jobs import NO_SPEAKERS_NOTICE, SPEAKERS

log = structlog.get_logger(__name__)

STORE_S: Final = 15.0
"""Work between two times that the hearing is stored: it grows, and is written whole."""


@dataclass(frozen=True, slots=True)
class Found:
    """The segments divided among their speakers, None where they stay as they are."""

    spoken: list[Segment] | None = None
    notice: str = ""


def are_wanted(claim: Claim, plan: ChannelPlan) -> bool:
    """Whether the job looks for speakers; those of a call are its channels."""
    return claim.job.recording.finds_speakers and plan.mode is not ChannelMode.EACH


def find_speakers(
    claim: Claim,
    *,
    load: Callable[[], SpeakerDiariser | None],
    model_name: str,
    plan: ChannelPlan,
    slice_s: float,
    should_stop: Callable[[], bool],
) -> Found | None:
    """Listen until the slice is over; None while there is more to hear.

    Raises CancelledError where `should_stop` says so, LeaseLostError.
    """
    job, recording = claim.job, claim.job.recording
    begun = time.monotonic()
    if job.stage == SPEAKERS:
        revision = transcripts.revision_of_job(
            job=job, kind=jobs.passes_of(job)[-1], model_name=model_name
        )
        stored = job.checkpoint.get("hearing")
        hearing = Hearing.from_json(stored) if stored else Hearing()
    else:
        revision = jobs.begin_speakers(claim=claim, model_name=model_name)
        hearing = Hearing()
    segments = transcripts.segments_of(revision)
    if not segments:
        return Found()
    try:
        diariser = load()
    except ModelError as error:
        log.warning("speakers_not_found", job=str(job.id), error=error.code)
        diariser = None
    if diariser is None:
        return Found(notice=NO_SPEAKERS_NOTICE)

    def store(heard_samples: int, work_seconds: float) -> None:
        jobs.store_hearing(
            claim=claim,
            checkpoint={"hearing": hearing.as_json(), "plan": asdict(plan)},
            audio_done_ms=samples_to_ms(heard_samples),
            work_seconds=work_seconds,
        )

    stored_at, came_to = begun, hearing.next_sample
    for heard_samples in listen(recording.source_path, hearing, diariser=diariser, plan=plan):
        if should_stop():
            raise CancelledError
        now = time.monotonic()
        # A diariser that cannot go on from a checkpoint would begin again in each slice.
        if now - begun >= slice_s and hearing.next_sample > came_to:
            store(heard_samples, now - stored_at)
            return None
        if now - stored_at >= STORE_S:
            store(heard_samples, now - stored_at)
            stored_at = now
    turns = diariser.turns(hearing, speakers=recording.speaker_count)
    return Found(assign(segments, turns))


def listen(
    path: Path, hearing: Hearing, *, diariser: SpeakerDiariser, plan: ChannelPlan
) -> Iterator[int]:
    """Go on with `hearing` to the end of the recording; yields the samples heard."""
    with open_audio(path, track=plan.track) as source:
        yield from diariser.listen(
            hearing, skip_to(decode_planned(source, plan), hearing.next_sample)
        )
