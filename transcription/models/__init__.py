"""Everything that must last. Each row belongs to somebody."""

from __future__ import annotations

from transcription.models.caption_link import CaptionLink
from transcription.models.job import Attempt, Job, JobState
from transcription.models.live_session import (
    LiveMark,
    LiveMarkKind,
    LiveSession,
    LiveState,
    LiveUtterance,
    Visibility,
)
from transcription.models.recording import (
    Recording,
    RecordingSource,
    RecordingState,
    Upload,
    UploadState,
)
from transcription.models.transcript import RevisionKind, TranscriptRevision, TranscriptSegment

__all__ = [
    "Attempt",
    "CaptionLink",
    "Job",
    "JobState",
    "LiveMark",
    "LiveMarkKind",
    "LiveSession",
    "LiveState",
    "LiveUtterance",
    "Recording",
    "RecordingSource",
    "RecordingState",
    "RevisionKind",
    "TranscriptRevision",
    "TranscriptSegment",
    "Upload",
    "UploadState",
    "Visibility",
]
