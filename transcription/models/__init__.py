"""Everything that must last. Each row belongs to somebody."""

from __future__ import annotations

from transcription.models.glossary import GlossaryTerm
from transcription.models.idempotency import IdempotentRequest
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
from transcription.models.retention import PurgeRun, Remains, RetentionPolicy
from transcription.models.share import OpenedContent, Share
from transcription.models.share_link import ShareLink
from transcription.models.transcript import (
    RevisionKind,
    SegmentMark,
    SpeakerName,
    TranscriptRevision,
    TranscriptSegment,
)
from transcription.models.webhook import (
    DeliveryState,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
)

__all__ = [
    "Attempt",
    "ChineseScript",
    "DeliveryState",
    "GlossaryTerm",
    "IdempotentRequest",
    "Job",
    "JobState",
    "LiveMark",
    "LiveMarkKind",
    "LiveSession",
    "LiveState",
    "LiveUtterance",
    "OpenedContent",
    "PurgeRun",
    "Recording",
    "RecordingSource",
    "RecordingState",
    "Remains",
    "RetentionPolicy",
    "RevisionKind",
    "SegmentMark",
    "Share",
    "ShareLink",
    "SpeakerName",
    "TranscriptRevision",
    "TranscriptSegment",
    "Upload",
    "UploadState",
    "Visibility",
    "Webhook",
    "WebhookDelivery",
    "WebhookEvent",
]
