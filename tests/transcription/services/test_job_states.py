"""States of jobs."""

from __future__ import annotations

from transcription.models import JobState
from transcription.services import job_states


def test_the_table_names_every_state() -> None:
    assert set(job_states.JOB_TRANSITIONS) == set(JobState)
