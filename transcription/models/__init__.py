"""Everything that must last. Each row belongs to somebody."""

from __future__ import annotations

from transcription.models.caption_link import CaptionLink
from transcription.models.glossary import GlossaryTerm
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
    ChineseScript,
    Recording,
    RecordingSource,
    RecordingState,
    Upload,
    UploadState,
)
from transcription.models.transcript import (
    RevisionKind,
    SegmentMark,
    SpeakerName,
    TranscriptRevision,
    TranscriptSegment,
)

__all__ = [
    "Attempt",
    "CaptionLink",
    "ChineseScript",
    "GlossaryTerm",
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
    "SegmentMark",
    "SpeakerName",
    "TranscriptRevision",
    "TranscriptSegment",
    "Upload",
    "UploadState",
    "Visibility",
]
