"""Jobs: transcriptions that were asked for."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from ninja import Schema
from pydantic import Field

from transcription.api.resources.recordings import OptionsIn, Problem
from transcription.api.words import Whole
from transcription.models import ChineseScript, Job, JobState
from transcription.services.job_options import JobOptions


class JobOut(Schema):
    """A transcription of one recording."""

    id: UUID
    recording: UUID
    state: JobState
    stage: Annotated[str, Field(description="`speakers` while they are told apart, else empty.")]
    language: str
    is_draft_only: bool
    is_cancel_requested: bool
    audio_done_ms: int
    audio_total_ms: int
    queue_position: Annotated[
        int | None, Field(description="1 for the next one; of a waiting job that is read alone.")
    ]
    problem: Problem | None
    enqueued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @staticmethod
    def of(job: Job, queue_position: int | None = None) -> JobOut:
        return JobOut(
            id=job.id,
            recording=job.recording_id,
            state=JobState(job.state),
            stage=job.stage,
            language=job.language,
            is_draft_only=job.is_draft_only,
            is_cancel_requested=job.is_cancel_requested,
            audio_done_ms=job.audio_done_ms,
            audio_total_ms=job.audio_total_ms,
            queue_position=queue_position,
            problem=Problem.of(job.problem_code, job.problem),
            enqueued_at=job.enqueued_at,
            started_at=job.started_at,
            finished_at=job.finished_at,
        )


class JobFilter(Schema):
    """Which jobs of those whose recordings this person may read."""

    state: JobState | None = None
    recording: UUID | None = None


class JobIn(OptionsIn):
    """A transcription from the start. What is left out stays as it was for the recording."""

    chinese_script: Annotated[
        ChineseScript | Literal[""],
        Field(description="Characters of Chinese; empty: those that are usual on this server."),
    ] = ""
    track: Annotated[
        Whole | None, Field(ge=0, le=1000, description="Another audio track of the recording.")
    ] = None

    def read(self) -> JobOptions:
        """Raises InvalidInputError."""
        return replace(super().read(), chinese_script=str(self.chinese_script))
