"""Transcripts: revisions of a recording's text, their segments and words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from ninja import Schema
from pydantic import Field

from asr_engine.results import Word
from transcription.api.words import Body
from transcription.formats.speakers import shown_name
from transcription.models import RevisionKind, TranscriptRevision, TranscriptSegment


class RevisionOut(Schema):
    """All segments of a recording as one pass, or one edit, left them."""

    number: Annotated[int, Field(description="Counts from 1 within the recording.")]
    kind: RevisionKind
    language: str
    model_name: str
    is_complete: bool
    is_shown: Annotated[bool, Field(description="This is what pages and downloads show.")]
    created_at: datetime

    @staticmethod
    def of(revision: TranscriptRevision, *, shown: int | None) -> RevisionOut:
        return RevisionOut(
            number=revision.number,
            kind=RevisionKind(revision.kind),
            language=revision.language,
            model_name=revision.model_name,
            is_complete=revision.is_complete,
            is_shown=revision.pk == shown,
            created_at=revision.created_at,
        )


class WordOut(Schema):
    """A word, and how sure the model is of it."""

    text: str
    start_ms: int
    end_ms: int
    confidence: float | None

    @staticmethod
    def of(word: Word) -> WordOut:
        return WordOut(
            text=word.text, start_ms=word.start_ms, end_ms=word.end_ms, confidence=word.confidence
        )


class SegmentOut(Schema):
    """A timed piece of a transcript. One with a `mark` has no text."""

    index: int
    start_ms: int
    end_ms: int
    text: str
    speaker: Annotated[str, Field(description="A label; empty where speakers are not told apart.")]
    speaker_name: Annotated[str, Field(description="What people call the speaker.")]
    language: str
    mark: str
    words: list[WordOut]

    @staticmethod
    def of(segment: TranscriptSegment, *, language: str, names: Mapping[str, str]) -> SegmentOut:
        return SegmentOut(
            index=segment.index,
            start_ms=segment.start_ms,
            end_ms=segment.end_ms,
            text=segment.text,
            speaker=segment.speaker,
            speaker_name=shown_name(segment.speaker, names),
            language=segment.language or language,
            mark=segment.mark,
            words=[WordOut.of(Word.from_json(word)) for word in segment.words],
        )


class SpeakerOut(Schema):
    """Somebody who speaks in the transcript that is shown."""

    label: str
    name: str
    spoken_ms: int


class SpeakersOut(Schema):
    """Who speaks, in the order of their first words."""

    speakers: list[SpeakerOut]


class SpeakersChange(Body):
    """Names by label. An empty one takes the name away; labels left out keep theirs."""

    names: Annotated[dict[str, str], Field(max_length=100)]
