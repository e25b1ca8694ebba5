"""A real worker process that is killed in the middle; the names of tasks and queues."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.test import Client

from asr_engine.backends.scripted import encode_blocks, script, word_text
from tests.fakes.audio import wav_bytes
from tests.fakes.databases import database_url
from tests.fakes.live import final, make_session, put_on_disk
from tests.fakes.recordings import claim_of, make_job, make_upload
from tests.fakes.waiting import wait_until
from transcription import queue, tasks
from transcription.models import (
    Attempt,
    Job,
    JobState,
    LiveUtterance,
    RevisionKind,
    TranscriptSegment,
)
from transcription.runners.ending import watch_for_end
from transcription.services import job_queue, live_sessions
from webapp.accounts.models import User
from webapp.celery import EVERY_S, app

ROOT = Path(__file__).resolve().parent.parent.parent
WORDS = 3000
HANG_AT_BATCH = 3
"""The only one of the third and last group, whichever step is counted."""


@contextmanager
def worker(
    data_dir: Path, notes: Path, *, step: str = "encode", stop_at: int = 0
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.batch_worker", str(notes), step, str(stop_at)],
        cwd=ROOT,
        env={
            **os.environ,
            "TRANSCRIBE_DATA_DIR": str(data_dir),
            "TRANSCRIBE_DATABASE_URL": database_url(),
            "ASR_BATCH_BACKEND": "scripted",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for(holds: Callable[[], Any], process: subprocess.Popen[bytes]) -> None:
    def holds_in_time() -> Any:
        assert process.poll() is None, "the worker ended"
        return holds()

    wait_until(holds_in_time, timeout_s=90, what="the worker gets there")


def words_of(job: Job, kind: RevisionKind) -> list[str]:
    texts = TranscriptSegment.objects.filter(revision__job=job, revision__kind=kind)
    return " ".join(texts.order_by("index").values_list("text", flat=True)).split()


def test_every_task_is_registered_and_every_beat_has_a_queue() -> None:
    app.loader.import_default_modules()
    assert {task.value for task in queue.Task} <= set(app.tasks)
    assert set(queue.QUEUES) == set(queue.Task)
    assert {entry["task"] for entry in app.conf.beat_schedule.values()} == set(EVERY_S)


@pytest.mark.django_db(transaction=True)
def test_a_worker_killed_between_two_passes_resumes_at_the_second(
    alice: User, tmp_path: Path
) -> None:
    talk = wav_bytes(encode_blocks(script(WORDS, utterance_words=50)))
    job = make_job(alice, content=talk, duration_ms=373_000)
    notes = tmp_path / "notes"

    with worker(tmp_path, notes, step="refine", stop_at=HANG_AT_BATCH) as first:
        # The last group's draft is stored, and its refine pass has begun.
        wait_for(lambda: len(words_of(job, RevisionKind.DRAFT)) > 2000, first)
        drafted, refined = words_of(job, RevisionKind.DRAFT), words_of(job, RevisionKind.REFINED)
        assert 0 < len(refined) < len(drafted)
        job.refresh_from_db()
        assert job.state == JobState.RUNNING
        first.send_signal(signal.SIGKILL)
        first.wait()
    notes.unlink()

    with worker(tmp_path, notes) as second:
        wait_for(lambda: Job.objects.filter(id=job.id, state=JobState.DONE).exists(), second)
        # Redelivered wake-ups find nothing to do.
        queue.send(queue.Task.RUN_JOBS)
        queue.send(queue.Task.RUN_JOBS)
        depth = queue_depth()
        wait_for(lambda: depth() == 0, second)

    again = notes.read_text().split()
    assert len(again) == len(set(again)) == 4  # those of the last group
    for kind in (RevisionKind.DRAFT, RevisionKind.REFINED):
        assert words_of(job, kind) == [word_text(number) for number in range(WORDS)]
    job.recording.refresh_from_db()
    shown = job.recording.current_revision
    assert shown is not None
    assert (shown.kind, shown.is_complete) == (RevisionKind.REFINED, True)
    assert list(Attempt.objects.values_list("outcome", flat=True)) == [job_queue.LOST_CODE, "done"]


@pytest.mark.django_db(transaction=True)
def test_a_worker_killed_over_a_live_utterance_hears_it_again_and_stores_it_once(
    alice: User, tmp_path: Path
) -> None:
    session = live_sessions.start_live_session(session=make_session(alice))
    put_on_disk(session, encode_blocks(range(9)))
    utterance = live_sessions.record_final(event=final(session, 0, "what the live pass heard"))
    assert utterance is not None

    def heard_again() -> LiveUtterance:
        return LiveUtterance.objects.get(id=utterance.id)

    with worker(tmp_path, tmp_path / "notes", stop_at=1) as first:
        queue.send(queue.Task.REFINE_LIVE)
        wait_for(lambda: heard_again().refine_attempts == 1, first)
        first.send_signal(signal.SIGKILL)
        first.wait()
    assert heard_again().refined_at is None

    with worker(tmp_path, tmp_path / "notes") as second:
        queue.send(queue.Task.REFINE_LIVE)
        queue.send(queue.Task.REFINE_LIVE)
        wait_for(lambda: heard_again().refined_at, second)
        depth = queue_depth()
        wait_for(lambda: depth() == 0, second)

    assert heard_again().shown_text == " ".join(word_text(number) for number in range(9))
    assert heard_again().refine_attempts == 2
    session.refresh_from_db()
    assert session.last_seq == heard_again().seq == 2


@pytest.mark.django_db(transaction=True)
def test_stopping_a_worker_in_the_middle_is_no_failure_of_its_job(
    alice: User, tmp_path: Path
) -> None:
    talk = wav_bytes(encode_blocks(script(WORDS, utterance_words=50)))
    job = make_job(alice, content=talk, duration_ms=373_000)
    notes = tmp_path / "notes"
    with worker(tmp_path, notes, stop_at=HANG_AT_BATCH) as process:
        wait_for(lambda: notes.exists() and len(notes.read_text().split()) == 8, process)
        process.send_signal(signal.SIGTERM)  # the model hangs: it will be killed
        wait_for(lambda: Job.objects.filter(id=job.id, state=JobState.QUEUED).exists(), process)
    assert job_queue.reclaim_jobs(worker=Job.objects.get().worker) == 0
    job.refresh_from_db()
    assert (job.failures, job.audio_done_ms > 0) == (0, True)


def queue_depth() -> Callable[[], int]:
    import redis
    from django.conf import settings

    broker = redis.Redis.from_url(settings.SITE.broker_url)
    return lambda: int(broker.llen("batch"))  # type: ignore[arg-type]


def test_workers_give_way_to_live_work(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(os, "nice", asked.append)
    tasks.give_way()
    assert asked == [tasks.NICENESS]


def test_the_signal_to_end_is_known_at_once() -> None:
    ending = threading.Event()
    handler = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        watch_for_end(ending)
        os.kill(os.getpid(), signal.SIGTERM)
        assert ending.wait(timeout=30)
    finally:
        signal.signal(signal.SIGTERM, handler)
        os.close(signal.set_wakeup_fd(-1))


class Consumer:
    """What Celery sends with `worker_ready`."""

    def __init__(self, queue_name: str) -> None:
        self.hostname = "jobs@one"
        self.app = SimpleNamespace(
            amqp=SimpleNamespace(queues=SimpleNamespace(consume_from={queue_name: None}))
        )


def test_logins_that_have_expired_are_forgotten(client: Client, alice: User) -> None:
    client.force_login(alice)
    old = SessionStore()
    old.set_expiry(-1)
    old.create()
    tasks.forget_logins()
    assert [row.session_key for row in Session.objects.all()] == [client.session.session_key]


def test_a_restarted_batch_worker_takes_its_job_back_and_wakes(
    alice: User, sent: list[tuple[str, ...]]
) -> None:
    make_job(alice)
    claim_of("jobs@one")
    tasks.take_up_work(sender=Consumer(queue.BATCH))
    assert Job.objects.get().state == JobState.QUEUED
    assert sent == [("transcription.run_jobs",)]


def test_a_restarted_chores_worker_asks_for_the_checks_that_its_predecessor_had(
    alice: User, sent: list[tuple[str, ...]]
) -> None:
    upload = make_upload(alice)
    tasks.take_up_work(sender=Consumer(queue.CHORES))
    assert ("transcription.check_upload", str(upload.id)) in sent
