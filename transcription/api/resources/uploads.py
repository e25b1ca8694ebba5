"""Uploads: recordings on their way in."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from ninja import Schema
from pydantic import Field

from transcription.api.resources.recordings import Problem
from transcription.models import Upload, UploadState


class UploadOut(Schema):
    """An upload. Once it is `accepted` there is a recording with the same id."""

    id: UUID
    state: UploadState
    display_name: str
    length_bytes: int
    offset_bytes: Annotated[int, Field(description="Bytes below it are on disk.")]
    problem: Annotated[Problem | None, Field(description="Why it was refused.")]
    recording: UUID | None
    created_at: datetime

    @staticmethod
    def of(upload: Upload) -> UploadOut:
        return UploadOut(
            id=upload.id,
            state=UploadState(upload.state),
            display_name=upload.display_name,
            length_bytes=upload.length_bytes,
            offset_bytes=upload.offset_bytes,
            problem=Problem.of(upload.problem_code, upload.problem),
            recording=upload.recording_id,
            created_at=upload.created_at,
        )
