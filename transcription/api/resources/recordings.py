"""Recordings, and what is asked of their transcription."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from django.db.models import Q, QuerySet
from ninja import Schema
from pydantic import Field, StrictBool

from transcription.api.resources.people import PersonName
from transcription.api.words import Body, Line, Moment, Whole
from transcription.models import Recording, RecordingSource, RecordingState
from transcription.services.job_options import JobOptions, read_options
from webapp.accounts.models import User

LONGEST_QUERY = 200


class Problem(Schema):
    """Why something has no transcript, or not all of it."""

    code: str
    sentence: str

    @staticmethod
    def of(code: str, sentence: str) -> Problem | None:
        return Problem(code=code, sentence=sentence) if code else None


class RecordingOut(Schema):
    """Stored audio with an owner. `revision` is the number of the transcript that is shown."""

    id: UUID
    title: str
    owner: PersonName
    source: RecordingSource
    state: RecordingState
    is_organisation_wide: bool
    language: Annotated[str, Field(description="As heard; empty before, and without speech.")]
    duration_ms: int
    size_bytes: int
    container: str
    codec: str
    has_audio: Annotated[bool, Field(description="False once retention has removed it.")]
    revision: int | None
    notice: str
    problem: Problem | None
    team: Annotated[int | None, Field(description="Whose retention policy counts.")]
    is_held: bool
    created_at: datetime
    recorded_at: datetime
    expires_at: datetime | None

    @staticmethod
    def of(recording: Recording) -> RecordingOut:
        revision = recording.current_revision
        return RecordingOut(
            id=recording.id,
            title=recording.title,
            owner=PersonName.of(recording.owner),
            source=RecordingSource(recording.source),
            state=RecordingState(recording.state),
            is_organisation_wide=recording.is_organisation_wide,
            language=recording.language,
            duration_ms=recording.duration_ms,
            size_bytes=recording.size_bytes,
            container=recording.container,
            codec=recording.codec,
            has_audio=recording.audio_removed_at is None,
            revision=None if revision is None else revision.number,
            notice=recording.notice,
            problem=Problem.of(recording.problem_code, recording.problem),
            team=recording.team_id,
            is_held=recording.is_held,
            created_at=recording.created_at,
            recorded_at=recording.recorded_at,
            expires_at=recording.expires_at,
        )


class RecordingFilter(Schema):
    """Which recordings of those that this person may read."""

    q: Annotated[Line, Field(max_length=LONGEST_QUERY, description="Part of the title.")] = ""
    state: RecordingState | None = None
    source: RecordingSource | None = None
    owner: Annotated[Literal["me", "others", "anybody"], Field(description="Whose recordings.")] = (
        "anybody"
    )
    language: Annotated[Line, Field(max_length=16)] = ""
    created_from: Moment | None = None
    created_before: Moment | None = None

    def among(self, recordings: QuerySet[Recording], user: User) -> QuerySet[Recording]:
        """Those that fit."""
        wanted = Q()
        if self.q:
            wanted &= Q(title__icontains=self.q)
        if self.state is not None:
            wanted &= Q(state=self.state)
        if self.source is not None:
            wanted &= Q(source=self.source)
        if self.owner != "anybody":
            own = Q(owner=user)
            wanted &= own if self.owner == "me" else ~own
        if self.language:
            wanted &= Q(language=self.language)
        if self.created_from is not None:
            wanted &= Q(created_at__gte=self.created_from)
        if self.created_before is not None:
            wanted &= Q(created_at__lt=self.created_before)
        return recordings.filter(wanted)


class RecordingChange(Body):
    """What is left out stays as it is."""

    title: Annotated[Line, Field(min_length=1, max_length=300)] | None = None
    is_organisation_wide: Annotated[
        StrictBool | None,
        Field(description="Everybody who can log in may read. The owner's to change."),
    ] = None
    team: Annotated[
        Whole | None, Field(description="One of the owner's teams; null for none. The owner's.")
    ] = None
    expires_at: Annotated[
        Moment | None, Field(description="A date of its own; null for none. The owner's.")
    ] = None


class OptionsIn(Body):
    """What is asked of a transcription. What is left out is as usual."""

    language: Annotated[
        Line,
        Field(max_length=16, description="A code, `mul` where several mix; empty to detect it."),
    ] = ""
    speakers: Annotated[
        Line,
        Field(max_length=8, description="`count`, or their number; empty: not told apart."),
    ] = ""
    draft_only: Annotated[StrictBool, Field(description="Without the second pass.")] = False

    def read(self) -> JobOptions:
        """Raises InvalidInputError."""
        return read_options(
            language=self.language, speakers=self.speakers, is_draft_only=self.draft_only
        )
