"""Live sessions and their captions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from ninja import Schema
from pydantic import Field

from asr_engine.protocol import ViewerEvent
from asr_engine.results import Word
from transcription.api.resources.people import PersonName
from transcription.api.resources.transcripts import WordOut
from transcription.api.words import Body, Line, Whole
from transcription.models import LiveSession, LiveState, Visibility


class LiveSessionOut(Schema):
    """One meeting being captured. When it has ended there is a recording with the same id."""

    id: UUID
    title: str
    owner: PersonName
    reference: Annotated[str, Field(description="What the tool that made it calls it.")]
    visibility: Visibility
    language: str
    mode_ms: Annotated[int, Field(description="The latency mode; 0: the engine's own.")]
    state: LiveState
    last_seq: Annotated[int, Field(description="Number of the last stored change.")]
    recording: UUID | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @staticmethod
    def of(session: LiveSession) -> LiveSessionOut:
        return LiveSessionOut(
            id=session.id,
            title=session.title,
            owner=PersonName.of(session.owner),
            reference=session.reference,
            visibility=Visibility(session.visibility),
            language=session.language,
            mode_ms=session.mode_ms,
            state=LiveState(session.state),
            last_seq=session.last_seq,
            recording=session.recording_id,
            created_at=session.created_at,
            started_at=session.started_at,
            ended_at=session.ended_at,
        )


class LiveSessionFilter(Schema):
    """Which live sessions of those that this person may read."""

    state: LiveState | None = None
    reference: Annotated[Line, Field(max_length=64)] = ""
    owner: Annotated[Literal["me", "others", "anybody"], Field(description="Whose sessions.")] = (
        "anybody"
    )


class LiveSessionIn(Body):
    """A session that waits for its first capture. The engine judges language and mode then."""

    title: Annotated[Line, Field(max_length=300, description="Empty: one with the date.")] = ""
    reference: Annotated[
        Line, Field(max_length=64, description="What your tool calls it; webhooks say it too.")
    ] = ""
    language: Annotated[Line, Field(max_length=16, description="Empty: detected.")] = ""
    mode_ms: Annotated[Whole, Field(ge=0, le=10_000)] = 0
    visibility: Visibility = Visibility.PRIVATE


class LiveSessionChange(Body):
    """Who may read the captions, beside those with whom the session is shared."""

    visibility: Visibility


class CaptionOut(Schema):
    """A stored change of the captions; `gap`, `paused` and `closed` happened to the clock."""

    seq: int
    type: Literal["final", "refined", "gap", "paused", "closed"]
    utterance: int | None
    start_ms: int
    end_ms: int
    text: str
    words: list[WordOut]

    @staticmethod
    def of(event: ViewerEvent) -> CaptionOut:
        words = [WordOut.of(Word.from_json(word)) for word in event.words or ()]
        return CaptionOut.model_validate(
            {
                "seq": event.seq,
                "type": event.type,
                "utterance": event.utterance,
                "start_ms": event.start_ms,
                "end_ms": event.end_ms,
                "text": event.text or "",
                "words": words,
            }
        )


class CaptionsOut(Schema):
    """Everything after `after_seq`, by its place in the session. `last_seq` is the next
    `after_seq`; an utterance may come again, with what a second pass understood better."""

    state: LiveState
    last_seq: int
    captions: list[CaptionOut]
