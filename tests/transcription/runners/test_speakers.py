"""The stage that finds speakers: divided text, slices, and text that stands without it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest

from asr_engine import registry
from asr_engine.audio import SAMPLE_RATE, FloatSamples, samples_to_ms
from asr_engine.backends.scripted import encode_blocks, script
from asr_engine.config import EngineSettings
from asr_engine.diarisation.port import Hearing, Turn
from asr_engine.errors import ModelMissingError
from tests.fakes.audio import wav_bytes
from tests.fakes.recordings import make_job
from transcription.models import Job, JobState, RecordingState
from transcription.runners import batch_job, speakers
from transcription.services import job_queue, jobs
from webapp.accounts.models import User

pytestmark = pytest.mark.django_db(transaction=True)

TALK = wav_bytes(encode_blocks(script(60, utterance_words=20)))
"""Some seconds of numbered words."""
STEP_SAMPLES = SAMPLE_RATE // 2


@dataclass
class Alternating:
    """Hears "1" in the first three seconds, "2" after them, and counts each sample."""

    name: str = "alternating"
    heard_samples: int = 0
    asked: list[int | None] = field(default_factory=list)

    def listen(self, hearing: Hearing, samples: Iterable[FloatSamples]) -> Iterator[int]:
        joined = np.concatenate([*samples, np.zeros(0, np.float32)])
        for start in range(0, len(joined), STEP_SAMPLES):
            piece = joined[start : start + STEP_SAMPLES]
            self.heard_samples += len(piece)
            at_ms = samples_to_ms(hearing.next_sample)
            hearing.turns.append(Turn(at_ms, at_ms + 500, "1" if at_ms < 3000 else "2"))
            hearing.next_sample += len(piece)
            yield hearing.next_sample

    def turns(self, hearing: Hearing, *, speakers: int | None) -> list[Turn]:
        self.asked.append(speakers)
        return hearing.turns


@pytest.fixture
def diariser(monkeypatch: pytest.MonkeyPatch) -> Iterator[Alternating]:
    settings = EngineSettings(batch_backend="scripted")
    monkeypatch.setattr(batch_job, "engine_settings", lambda: settings)
    fake = Alternating()
    monkeypatch.setattr(registry, "speaker_diariser", lambda settings: fake)
    batch_job.loaded_models.cache_clear()
    batch_job.loaded_diariser.cache_clear()
    yield fake
    batch_job.loaded_models.cache_clear()
    batch_job.loaded_diariser.cache_clear()


def run_all(worker: str = "jobs@one") -> int:
    slices = 0
    while batch_job.run_next_slice(worker):
        slices += 1
    return slices


def spoken(job: Job) -> list[tuple[str, list[str]]]:
    """Who says which words, in order, as the page shows it."""
    job.recording.refresh_from_db()
    revision = job.recording.current_revision
    assert revision is not None
    return [(row.speaker, row.text.split()) for row in revision.segments.order_by("index")]


def words(job: Job) -> list[str]:
    return [word for _, said in spoken(job) for word in said]


def test_text_is_divided_where_speakers_change(alice: User, diariser: Alternating) -> None:
    plain = make_job(alice, content=TALK, duration_ms=7000)
    run_all()
    job = make_job(alice, content=TALK, duration_ms=7000, finds_speakers=True, speaker_count=2)
    run_all()
    assert words(job) == words(plain)
    labels = [speaker for speaker, _ in spoken(job)]
    assert labels == sorted(labels)
    assert set(labels) == {"1", "2"}
    assert {speaker for speaker, _ in spoken(plain)} == {""}
    assert diariser.asked == [2]


def test_each_slice_goes_on_where_the_one_before_stopped(
    alice: User, diariser: Alternating, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_job, "SLICE_S", 0.0)
    job = make_job(alice, content=TALK, duration_ms=7000, finds_speakers=True)
    assert run_all() > 3
    job.refresh_from_db()
    assert (job.state, job.recording.state) == (JobState.DONE, RecordingState.READY)
    assert diariser.heard_samples * 2 == len(TALK) - 44
    assert {speaker for speaker, _ in spoken(job)} == {"1", "2"}


def test_a_worker_that_dies_while_it_listens_is_followed(
    alice: User, diariser: Alternating, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(**_: object) -> None:
        raise KeyboardInterrupt

    job = make_job(alice, content=TALK, duration_ms=7000, finds_speakers=True)
    monkeypatch.setattr(speakers, "STORE_S", 0.0)
    with monkeypatch.context() as patched:
        patched.setattr(jobs, "store_hearing", die)
        with pytest.raises(KeyboardInterrupt):
            batch_job.run_next_slice("jobs@one")
    said = words(job)
    assert said
    job.refresh_from_db()
    jobs.requeue_job(claim=job_queue.Claim(job, job.fence, job.worker))
    run_all("jobs@two")
    assert words(job) == said
    assert {speaker for speaker, _ in spoken(job)} == {"1", "2"}


def test_text_stands_where_the_model_is_missing(
    alice: User, diariser: Alternating, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(settings: EngineSettings) -> None:
        raise ModelMissingError("speakers")

    monkeypatch.setattr(registry, "speaker_diariser", missing)
    job = make_job(alice, content=TALK, duration_ms=7000, finds_speakers=True)
    run_all()
    job.refresh_from_db()
    assert job.state == JobState.DONE
    assert {speaker for speaker, _ in spoken(job)} == {""}
    assert job.recording.notice == jobs.NO_SPEAKERS_NOTICE
