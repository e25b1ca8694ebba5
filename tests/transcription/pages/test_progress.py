"""States in words."""

from __future__ import annotations

import pytest

from transcription.models import Job, JobState, Recording, RecordingState
from transcription.pages.progress import progress_of
from transcription.services.jobs import SPEAKERS


def recording(state: RecordingState, **fields: str) -> Recording:
    return Recording(state=state, **fields)


def job(**fields: object) -> Job:
    return Job(**{"state": JobState.RUNNING, "audio_total_ms": 100_000, **fields})


def test_ready_needs_no_job() -> None:
    assert progress_of(recording(RecordingState.READY), None).words == "Ready"


def test_attention_says_the_problem() -> None:
    progress = progress_of(recording(RecordingState.ATTENTION, problem="No audio track."), None)
    assert (progress.words, progress.detail) == ("Needs attention", "No audio track.")
    assert not progress.is_open


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (None, "Waiting to be transcribed"),
        (0, "Waiting to be transcribed"),
        (1, "Next to be transcribed"),
        (4, "Waiting · 3 before it"),
    ],
)
def test_place_in_the_queue(place: int | None, words: str) -> None:
    waiting = job(state=JobState.QUEUED)
    assert progress_of(recording(RecordingState.QUEUED), waiting, place).words == words


def test_share_and_time_left_follow_the_jobs_own_pace() -> None:
    running = job(audio_done_ms=25_000, work_seconds=100)
    progress = progress_of(recording(RecordingState.TRANSCRIBING), running)
    assert progress.words == "Transcribing · 25 % · about 5 min left"
    assert progress.percent == 25


def test_the_search_for_speakers_says_that_the_text_is_complete() -> None:
    looking = job(stage=SPEAKERS, audio_done_ms=25_000, work_seconds=100)
    progress = progress_of(recording(RecordingState.TRANSCRIBING), looking)
    assert progress.words == "Telling speakers apart · 25 %"
    assert progress.detail == "The text is complete."


def test_a_job_that_waits_to_look_for_speakers_is_not_new() -> None:
    waiting = job(state=JobState.QUEUED, stage=SPEAKERS)
    progress = progress_of(recording(RecordingState.QUEUED), waiting, 2)
    assert progress.words == "Telling speakers apart · just started"


def test_unfinished_work_is_never_a_hundred_percent() -> None:
    running = job(audio_done_ms=100_000, work_seconds=1)
    assert progress_of(recording(RecordingState.TRANSCRIBING), running).percent == 99


def test_start_without_numbers_has_no_nonsense() -> None:
    progress = progress_of(recording(RecordingState.TRANSCRIBING), job(audio_total_ms=0))
    assert progress.words == "Transcribing · just started"


def test_job_between_its_turns_keeps_its_share() -> None:
    paused = job(state=JobState.QUEUED, audio_done_ms=50_000)
    progress = progress_of(recording(RecordingState.TRANSCRIBING), paused, 2)
    assert progress.percent == 50
    assert progress.detail == "Waiting for its next turn"


def test_cancelled_job_is_stopping() -> None:
    stopping = job(is_cancel_requested=True)
    assert progress_of(recording(RecordingState.TRANSCRIBING), stopping).words == "Stopping"
