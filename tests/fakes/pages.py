"""Recordings with a transcript, as the pages show them."""

from __future__ import annotations

from typing import Any

from asr_engine.results import Word
from transcription.models import (
    Recording,
    RecordingSource,
    RecordingState,
    RevisionKind,
    TranscriptRevision,
    TranscriptSegment,
)
from webapp.accounts.models import User


def write_transcript(
    recording: Recording, *texts: str, number: int = 1, **fields: Any
) -> TranscriptRevision:
    """One segment a text, five seconds each, a word every 200 ms; it is shown from now on."""
    revision = TranscriptRevision.objects.create(
        **{
            "recording": recording,
            "number": number,
            "kind": RevisionKind.DRAFT,
            "is_complete": True,
            **fields,
        }
    )
    for index, text in enumerate(texts):
        start_ms = index * 5000
        words = [
            Word(word, start_ms + place * 200, start_ms + place * 200 + 200, 0.9).as_json()
            for place, word in enumerate(text.split())
        ]
        TranscriptSegment.objects.create(
            revision=revision,
            index=index,
            start_ms=start_ms,
            end_ms=start_ms + 4900,
            text=text,
            words=words,
        )
    recording.current_revision = revision
    recording.save()
    return revision


def make_recording(owner: User, title: str = "Meeting", *texts: str, **fields: Any) -> Recording:
    """A ready recording with these segments."""
    recording = Recording.objects.create(
        **{
            "owner": owner,
            "title": title,
            "source": RecordingSource.UPLOAD,
            "state": RecordingState.READY,
            "duration_ms": 60_000,
            **fields,
        }
    )
    if texts:
        write_transcript(recording, *texts)
    return recording
