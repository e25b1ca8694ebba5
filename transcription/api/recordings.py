"""REST v1: recordings."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from django.db.models import Q, QuerySet
from ninja import Query, Router, Schema
from pydantic import AwareDatetime, Field

from transcription import selectors
from transcription.api.access import Access, ApiRequest
from transcription.api.cursors import Page, Paging, newest_first
from transcription.api.people import PersonName
from transcription.api.words import Line
from transcription.models import Recording, RecordingSource, RecordingState
from webapp.accounts.models import Scope, User

LONGEST_QUERY = 200
READS = Access(Scope.RECORDINGS_READ)
WRITES = Access(Scope.RECORDINGS_WRITE)

router = Router()


class Problem(Schema):
    """Why a recording has no transcript, or not all of it."""

    code: str
    sentence: str


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
    created_at: datetime
    recorded_at: datetime
    expires_at: datetime | None

    @staticmethod
    def of(recording: Recording) -> RecordingOut:
        revision, problem = recording.current_revision, None
        if recording.problem_code:
            problem = Problem(code=recording.problem_code, sentence=recording.problem)
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
            problem=problem,
            created_at=recording.created_at,
            recorded_at=recording.recorded_at,
            expires_at=recording.expires_at,
        )


class RecordingFilter(Schema):
    """Which recordings of those that this person may read."""

    q: Annotated[Line, Field(max_length=LONGEST_QUERY, description="Words of the title.")] = ""
    state: RecordingState | None = None
    source: RecordingSource | None = None
    owner: Annotated[Literal["me", "others", "anybody"], Field(description="Whose recordings.")] = (
        "anybody"
    )
    language: Annotated[Line, Field(max_length=16)] = ""
    created_from: AwareDatetime | None = None
    created_before: AwareDatetime | None = None

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


@router.get("", auth=READS, response=Page[RecordingOut])
def list_recordings(
    request: ApiRequest, wanted: Query[RecordingFilter], paging: Query[Paging]
) -> Page[RecordingOut]:
    """Recordings that you may read, the newest first."""
    visible = selectors.recordings_visible_to(request.auth).select_related("current_revision")
    rows, next_cursor = newest_first(wanted.among(visible, request.auth), paging, by="created_at")
    return Page(items=[RecordingOut.of(row) for row in rows], next_cursor=next_cursor)


@router.get("/{recording_id}", auth=READS, response=RecordingOut)
def read_recording(request: ApiRequest, recording_id: UUID) -> RecordingOut:
    """One recording."""
    return RecordingOut.of(selectors.access_recording_by_id(request.auth, recording_id))
