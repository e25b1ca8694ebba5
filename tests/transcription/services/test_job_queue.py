"""The queue: a job is claimed once, in its turn, and taken back from workers that are lost."""

from __future__ import annotations

from pytest_django import DjangoAssertNumQueries

from tests.fakes.recordings import change_job, claim_of, expire_lease, make_job, progress
from transcription.models import Attempt, JobState, RecordingSource, RecordingState
from transcription.services import job_queue, job_states, jobs
from webapp.accounts.models import User


def test_a_claim_takes_the_job_once(alice: User) -> None:
    job = make_job(alice)
    claim = claim_of("jobs@one")
    assert job_queue.claim_next_job(worker="jobs@two") is None
    job.refresh_from_db()
    assert (job.state, job.fence, job.worker) == (JobState.RUNNING, 1, "jobs@one")
    assert claim.job.recording.folder == job.recording.folder
    job.recording.refresh_from_db()
    assert job.recording.state == RecordingState.TRANSCRIBING
    assert Attempt.objects.get().outcome == ""


def test_a_renewed_lease_is_not_reaped(alice: User) -> None:
    job = make_job(alice)
    claim = claim_of()
    expire_lease(job)
    assert jobs.renew_lease(claim=claim) is False
    assert job_queue.reap_jobs() == 0


def test_a_restarted_worker_takes_back_its_own_job_at_once(alice: User) -> None:
    make_job(alice)
    claim_of("jobs@one")
    assert job_queue.reclaim_jobs(worker="jobs@two") == 0
    assert job_queue.reclaim_jobs(worker="jobs@one") == 1
    assert claim_of("jobs@one").fence == 2


def test_reaping_wakes_a_worker_only_where_none_will_ask(
    alice: User, sent: list[tuple[str, ...]]
) -> None:
    make_job(alice)
    make_job(alice)
    job_queue.reap_jobs()
    assert sent == [("transcription.run_jobs",)]
    claim_of()
    job_queue.reap_jobs()
    assert len(sent) == 1


def test_three_lost_workers_at_one_place_end_the_job_with_a_sentence(alice: User) -> None:
    job = make_job(alice)
    for _ in range(job_states.MAX_FAILURES):
        change_job(job, last_slice_at=None)
        claim_of()
        expire_lease(job)
        job_queue.reap_jobs()
    job.refresh_from_db()
    job.recording.refresh_from_db()
    assert (job.state, job.failures) == (JobState.FAILED, 3)
    assert job.recording.state == RecordingState.ATTENTION
    assert job.recording.problem == job_queue.LOST_PROBLEM
    assert job_queue.claim_next_job(worker="jobs@one") is None


def test_progress_forgives_earlier_failures(alice: User) -> None:
    job = make_job(alice)
    for _ in range(2 * job_states.MAX_FAILURES):
        claim = claim_of()
        jobs.store_progress(claim=claim, progress=progress("x"))
        expire_lease(job)
        job_queue.reap_jobs()
    job.refresh_from_db()
    assert (job.state, job.failures) == (JobState.QUEUED, 1)


def test_place_in_the_queue(alice: User, bob: User) -> None:
    first, second = make_job(alice), make_job(alice)
    other = make_job(bob)
    live = make_job(bob, source=RecordingSource.LIVE)
    places = [job_queue.queue_position(job=job) for job in (live, first, other, second)]
    assert places == [1, 2, 3, 4]
    claim_of()
    assert job_queue.queue_position(job=live) == 0
    # Alice has waited longer than Bob, who was served.
    assert job_queue.queue_position(job=other) == 2


def test_claiming_costs_the_same_however_long_the_queue(
    alice: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(20):
        make_job(alice)
    # The queue, who was served, savepoint, claim, row, attempt, recording, release.
    with django_assert_max_num_queries(8):
        claim_of()
