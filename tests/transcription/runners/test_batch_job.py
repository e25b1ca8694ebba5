"""A slice of a job: groups stored once, given back, cancelled, failed, never resurrected."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

import pytest

from asr_engine import registry
from asr_engine.backends import scripted as scripted_backend
from asr_engine.backends.scripted import ScriptedBatchModel, encode_blocks, script, word_text
from asr_engine.config import EngineSettings
from asr_engine.errors import ModelMissingError
from tests.fakes.audio import wav_bytes
from tests.fakes.recordings import make_job
from transcription.models import (
    Attempt,
    Job,
    JobState,
    Recording,
    RecordingState,
    RevisionKind,
    TranscriptRevision,
    TranscriptSegment,
)
from transcription.runners import batch_job
from transcription.services import job_queue, jobs, queue_order, trash
from transcription.services.job_queue import Claim
from transcription.services.jobs import Progress
from webapp.accounts.models import User

# The lease is renewed from a second thread, which must see the rows.
pytestmark = pytest.mark.django_db(transaction=True)

WORDS = 3000
TALK = wav_bytes(encode_blocks(script(WORDS, utterance_words=50)))
"""Six minutes: thirteen windows, and so several groups."""


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings = EngineSettings(batch_backend="scripted")
    monkeypatch.setattr(batch_job, "engine_settings", lambda: settings)
    batch_job.loaded_models.cache_clear()
    yield
    batch_job.loaded_models.cache_clear()


@pytest.fixture
def job(transactional_db: None, alice: User) -> Job:
    return make_job(alice, content=TALK, duration_ms=373_000)


def run_all(worker: str = "jobs@one") -> int:
    slices = 0
    while batch_job.run_next_slice(worker):
        slices += 1
    return slices


def words_of(recording: Recording) -> list[str]:
    recording.refresh_from_db()
    revision = recording.current_revision
    assert revision is not None
    return " ".join(revision.segments.values_list("text", flat=True)).split()


def before_decoding(
    monkeypatch: pytest.MonkeyPatch, call: int, act: Callable[[], None]
) -> list[int]:
    """Do `act` before the model's `call`-th batch (from 1); returns where calls are counted."""
    calls: list[int] = []
    decode = ScriptedBatchModel.decode

    def wrapped(self: ScriptedBatchModel, *arguments: Any, **options: Any) -> Any:
        calls.append(len(calls) + 1)
        if calls[-1] == call:
            act()
        return decode(self, *arguments, **options)

    monkeypatch.setattr(ScriptedBatchModel, "decode", wrapped)
    return calls


def test_a_recording_is_transcribed_to_its_last_word(job: Job) -> None:
    assert run_all() == 1
    job.refresh_from_db()
    assert job.state == JobState.DONE
    assert words_of(job.recording) == [word_text(number) for number in range(WORDS)]
    assert job.recording.state == RecordingState.READY
    assert job.audio_done_ms == job.audio_total_ms
    revisions = TranscriptRevision.objects.values_list("kind", "model_name", "language")
    assert list(revisions) == [("draft", "scripted", "en"), ("refined", "scripted", "en")]


def test_slices_give_the_same_text_each_group_once(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_job, "SLICE_S", 0.0)
    calls = before_decoding(monkeypatch, 0, lambda: None)
    assert run_all() > 1
    sliced_calls = len(calls)
    assert words_of(job.recording) == [word_text(number) for number in range(WORDS)]
    monkeypatch.setattr(batch_job, "SLICE_S", 60.0)
    calls.clear()
    jobs.retry_job(recording=job.recording, requested_by=None)
    run_all()
    assert len(calls) == sliced_calls


class KilledError(BaseException):
    """What nothing in a worker can catch."""


def test_a_worker_killed_inside_or_between_passes_is_followed_without_a_word_lost_or_doubled(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [word_text(number) for number in range(1300)]
    talk = wav_bytes(encode_blocks(script(len(words), utterance_words=50)))
    for call in (2, 3, 4):  # the first group is refined, the second drafted, and refined
        job = make_job(alice, content=talk)
        with monkeypatch.context() as patch:
            before_decoding(patch, call, fail_with(KilledError()))
            with pytest.raises(KilledError):
                batch_job.run_next_slice("jobs@one")
        job_queue.reclaim_jobs(worker="jobs@one")
        run_all()
        for revision in job.revisions.all():
            texts = " ".join(revision.segments.values_list("text", flat=True))
            assert texts.split() == words
            assert revision.is_complete
        job.refresh_from_db()
        assert (job.state, job.fence) == (JobState.DONE, 2)


def test_progress_goes_on_with_each_pass_and_is_whole_only_at_the_end(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares: list[float] = []
    store = jobs.store_progress

    def watched(*, claim: Claim, progress: Progress) -> Any:
        shares.append(progress.audio_done_ms / progress.audio_total_ms)
        return store(claim=claim, progress=progress)

    monkeypatch.setattr(jobs, "store_progress", watched)
    monkeypatch.setattr(batch_job, "SLICE_S", 0.0)
    run_all()
    assert len(shares) == 8
    assert shares == sorted(set(shares))
    assert shares[-2] < 1 == shares[-1]


def test_the_draft_pass_alone_is_one_revision(job: Job) -> None:
    Job.objects.update(is_draft_only=True)
    run_all()
    assert words_of(job.recording) == [word_text(number) for number in range(WORDS)]
    assert [revision.kind for revision in job.revisions.all()] == [RevisionKind.DRAFT]


def test_a_short_recording_waits_for_one_slice_of_a_long_one(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one of the same person, that comes while the long one is worked on."""
    monkeypatch.setattr(batch_job, "SLICE_S", 0.0)
    monkeypatch.setattr(queue_order, "SHORT_MS", 120_000)
    short: list[Job] = []

    def upload() -> None:
        content = wav_bytes(encode_blocks(script(50)))
        short.append(make_job(job.recording.owner, content=content, duration_ms=10_000))

    before_decoding(monkeypatch, 1, upload)
    run_all()
    turns = list(Attempt.objects.order_by("started_at").values_list("job_id", flat=True))
    assert turns[:3] == [job.id, short[0].id, job.id]


def test_chinese_is_stored_in_the_recordings_script(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripted_backend, "word_text", lambda number: "會議")
    Recording.objects.update(chinese_script="hans")
    run_all()
    assert set("".join(words_of(job.recording))) <= set("会议")


def test_two_people_take_turns(job: Job, bob: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_job, "SLICE_S", 0.0)
    other = make_job(bob, content=TALK, duration_ms=373_000)
    run_all()
    turns = list(Attempt.objects.order_by("started_at").values_list("job_id", flat=True))
    assert turns[:4] == [job.id, other.id, job.id, other.id]


def test_nothing_waits_nothing_is_done(transactional_db: None) -> None:
    assert batch_job.run_next_slice("jobs@one") is False


def test_silence_is_a_ready_recording_without_text(alice: User) -> None:
    job = make_job(alice, content=wav_bytes(encode_blocks([None] * 50)))
    run_all()
    job.recording.refresh_from_db()
    assert job.recording.state == RecordingState.READY
    assert job.recording.notice == jobs.NO_SPEECH_NOTICE
    assert not TranscriptSegment.objects.exists()


def test_deleting_during_a_run_leaves_nothing(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    own = job.recording
    delete = partial(trash.delete_for_ever, recording=own, deleted_by=own.owner)
    before_decoding(monkeypatch, 2, delete)
    assert batch_job.run_next_slice("jobs@one") is True
    assert not job.recording.folder.exists()
    for model in (Recording, Job, Attempt, TranscriptRevision, TranscriptSegment):
        assert not model.objects.exists()


def test_a_cancel_is_seen_before_the_next_batch(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = threading.Event()
    renew = jobs.renew_lease

    def watched(**arguments: Any) -> bool:
        is_cancelled = renew(**arguments)
        if is_cancelled:
            # The beat sets its own flag after this returns; it beats again within 10 ms.
            seen.set() if watched.was_cancelled else None  # type: ignore[attr-defined]
            watched.was_cancelled = True  # type: ignore[attr-defined]
        return is_cancelled

    watched.was_cancelled = False  # type: ignore[attr-defined]
    monkeypatch.setattr(jobs, "renew_lease", watched)
    monkeypatch.setattr(batch_job, "BEAT_S", 0.01)

    def cancel() -> None:
        jobs.cancel_job(job=job, cancelled_by=job.recording.owner)
        assert seen.wait(timeout=30)

    calls = before_decoding(monkeypatch, 1, cancel)
    run_all()
    job.refresh_from_db()
    job.recording.refresh_from_db()
    assert calls == [1]
    assert job.state == JobState.CANCELLED
    assert job.recording.problem_code == "cancelled"


def test_a_worker_that_ends_gives_its_job_back_while_the_model_works(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the process is killed before the model is done: no failure is counted."""
    ending, is_given_back = threading.Event(), threading.Event()
    give_back = jobs.requeue_job

    def watched(**arguments: Any) -> None:
        give_back(**arguments)
        is_given_back.set()

    def end() -> None:
        ending.set()
        assert is_given_back.wait(timeout=30)
        job.refresh_from_db()
        assert (job.state, job.failures) == (JobState.QUEUED, 0)

    monkeypatch.setattr(batch_job, "ENDING", ending)
    monkeypatch.setattr(batch_job, "BEAT_S", 0.01)
    monkeypatch.setattr(jobs, "requeue_job", watched)
    calls = before_decoding(monkeypatch, 1, end)
    assert batch_job.run_next_slice("jobs@one") is True
    assert batch_job.run_next_slice("jobs@one") is False
    assert calls == [1]
    job.refresh_from_db()
    assert (job.state, job.failures) == (JobState.QUEUED, 0)
    ending.clear()
    run_all("jobs@two")
    assert words_of(job.recording) == [word_text(number) for number in range(WORDS)]


def test_a_worker_that_lost_its_lease_stores_nothing(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_over() -> None:
        job_queue.reclaim_jobs(worker="jobs@one")
        assert job_queue.claim_next_job(worker="jobs@two") is not None

    before_decoding(monkeypatch, 1, take_over)
    assert batch_job.run_next_slice("jobs@one") is True
    job.refresh_from_db()
    assert (job.state, job.worker, job.checkpoint) == (JobState.RUNNING, "jobs@two", {})
    assert not TranscriptSegment.objects.exists()


def fail_with(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def test_an_unexpected_fault_is_tried_again_and_told_without_its_text(
    job: Job, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before_decoding(monkeypatch, 1, fail_with(RuntimeError("words of the recording")))
    batch_job.run_next_slice("jobs@one")
    job.refresh_from_db()
    assert (job.state, job.failures) == (JobState.QUEUED, 1)
    assert "job_failed" in caplog.text
    assert "words of the recording" not in caplog.text
    run_all()
    assert words_of(job.recording) == [word_text(number) for number in range(WORDS)]


def test_a_missing_model_fails_with_the_command_that_mends_it(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(settings: EngineSettings) -> NoReturn:
        raise ModelMissingError

    monkeypatch.setattr(registry, "batch_model", missing)
    run_all()
    job.recording.refresh_from_db()
    assert job.recording.state == RecordingState.ATTENTION
    assert "manage.py models fetch" in job.recording.problem


def test_missing_audio_fails_with_a_sentence(job: Job) -> None:
    job.recording.source_path.unlink()
    run_all()
    job.recording.refresh_from_db()
    assert job.recording.problem == batch_job.MISSING_PROBLEM


def test_a_language_that_the_model_lacks_fails_with_a_sentence(job: Job) -> None:
    Job.objects.update(language="xx")
    run_all()
    job.recording.refresh_from_db()
    assert job.recording.problem_code == "unsupported_language"
