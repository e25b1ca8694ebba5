"""Recordings, uploads and jobs for tests, with bytes on disk where a row promises them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from asr_engine.results import LanguageGuess, Segment, Word
from transcription.models import Job, Recording, RecordingSource, RevisionKind, Upload
from transcription.services import job_queue, jobs, uploads
from transcription.services.job_queue import Claim
from transcription.services.jobs import Progress
from webapp.accounts.models import User


def make_recording(owner: User, *, content: bytes = b"RIFF audio", **fields: Any) -> Recording:
    values: dict[str, Any] = {
        "title": "Budget meeting",
        "source": RecordingSource.UPLOAD,
        "duration_ms": 60_000,
        "media_type": "audio/mpeg",
        "player_name": "player.mp3",
        **fields,
    }
    recording = Recording.objects.create(owner=owner, **values)
    recording.folder.mkdir(parents=True)
    recording.source_path.write_bytes(content)
    recording.player_path.write_bytes(content)
    return recording


def make_upload(owner: User, *, content: bytes = b"abc", name: str = "talk.wav") -> Upload:
    """A complete upload, waiting for its check."""
    upload = uploads.create_upload(owner=owner, display_name=name, length_bytes=len(content))
    return uploads.append_upload(upload=upload, offset_bytes=0, chunks=[content])


def make_job(owner: User, **fields: Any) -> Job:
    recording = make_recording(owner, **fields)
    return jobs.submit_job(recording=recording, requested_by=owner)


def segment(text: str, start_ms: int = 0) -> Segment:
    return Segment(
        start_ms=start_ms,
        end_ms=start_ms + 1000,
        text=text,
        words=(Word(text, start_ms, start_ms + 900, 0.9),),
    )


def progress(
    *texts: str, kind: RevisionKind = RevisionKind.REFINED, done_ms: int = 30_000
) -> Progress:
    return Progress(
        kind=kind,
        segments=[segment(text, index * 1000) for index, text in enumerate(texts)],
        checkpoint={"next_sample": done_ms * 16},
        audio_done_ms=done_ms,
        audio_total_ms=60_000,
        language=LanguageGuess("en", 0.98),
        model_name="scripted",
        work_seconds=2.0,
    )


def claim_of(worker: str = "jobs@one") -> Claim:
    claim = job_queue.claim_next_job(worker=worker)
    assert claim is not None
    return claim


def change_job(job: Job, **fields: Any) -> None:
    Job.objects.filter(id=job.id).update(**fields)


def expire_lease(job: Job) -> None:
    change_job(job, lease_expires_at=timezone.now() - timedelta(seconds=1))
