"""What a recording's state is called on a page: words, a share, a time left."""

from __future__ import annotations

from dataclasses import dataclass

from transcription.models import Job, JobState, Recording, RecordingState
from transcription.services.jobs import SPEAKERS
from transcription.templatetags.ui import about


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a recording as a person reads it. `percent` is None where no share is known."""

    words: str
    tone: str
    is_open: bool
    percent: int | None = None
    detail: str = ""


def progress_of(recording: Recording, job: Job | None, place: int | None = None) -> Progress:
    """Describe `recording` by its unfinished `job`, if any, at `place` (from 1) in the queue."""
    if recording.state == RecordingState.READY:
        return Progress("Ready", "", is_open=False)
    if recording.state == RecordingState.ATTENTION:
        problem = recording.problem or "The transcription did not finish."
        return Progress("Needs attention", "danger", is_open=False, detail=problem)
    if job is None:
        return Progress("Waiting", "", is_open=True)
    if job.is_cancel_requested:
        return Progress("Stopping", "", is_open=True)
    if job.state == JobState.RUNNING or job.audio_done_ms or job.stage == SPEAKERS:
        return _running(job)
    if not place:
        return Progress("Waiting to be transcribed", "", is_open=True)
    words = "Next to be transcribed" if place == 1 else f"Waiting · {place - 1} before it"
    return Progress(words, "", is_open=True, detail="It starts by itself; you may close this page.")


def _running(job: Job) -> Progress:
    is_telling_speakers = job.stage == SPEAKERS
    act = "Telling speakers apart" if is_telling_speakers else "Transcribing"
    detail = "The text is complete." if is_telling_speakers else ""
    if job.state == JobState.QUEUED:
        detail = "Waiting for its next turn"
    if not job.audio_total_ms or not job.audio_done_ms:
        return Progress(f"{act} · just started", "accent", is_open=True, percent=0, detail=detail)
    percent = min(99, job.audio_done_ms * 100 // job.audio_total_ms)
    words = f"{act} · {percent} %"
    left_s = time_left_s(job)
    if left_s is not None:
        words += f" · {about(left_s)} left"
    return Progress(words, "accent", is_open=True, percent=percent, detail=detail)


def time_left_s(job: Job) -> float | None:
    """Work left at the job's own pace so far, in seconds; None where that is not known."""
    if not job.audio_done_ms or not job.work_seconds or job.stage == SPEAKERS:
        return None
    return job.work_seconds * (job.audio_total_ms - job.audio_done_ms) / job.audio_done_ms
