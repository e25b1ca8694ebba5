"""The batch worker: one slice of the job whose turn it is, with the models of this process.

One job at a time in one thread (Celery's solo pool), which between two batches of windows hears
what live sessions have closed (`refine_live`); a second thread keeps the lease. What ends a
slice early (a cancel, a lost lease) is seen between two windows. A process that is asked to end
gives its job back at once, from the thread of the lease: the model may not be done in time.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog
from django.db import DatabaseError, close_old_connections, connection

from asr_engine import registry
from asr_engine.config import engine_settings
from asr_engine.diarisation.port import SpeakerDiariser
from asr_engine.errors import CancelledError, EngineError
from transcription.errors import LeaseLostError
from transcription.runners.ending import ENDING
from transcription.runners.pacing import LivePace
from transcription.runners.refine_live import LiveRefiner
from transcription.runners.slices import Models, work_on
from transcription.services import job_queue, jobs
from transcription.services.job_queue import Claim

log = structlog.get_logger(__name__)

SLICE_S: Final = 60.0
"""After this much work, at the end of a group, others get their turn."""
BEAT_S: Final = 2.0
"""Between two renewals of the lease, and so the longest wait before a cancel is seen."""
INTERNAL_CODE: Final = "internal"
INTERNAL_PROBLEM: Final = (
    "Something went wrong on the server while this recording was transcribed. "
    "The recording is safe; you can try again."
)
MISSING_CODE: Final = "audio_missing"
MISSING_PROBLEM: Final = "The audio of this recording is missing on the server."


def run_next_slice(worker: str) -> bool:
    """Work on the job whose turn it is, under the name `worker`.

    False where none waits, or this process is about to end.
    """
    if ENDING.is_set():
        return False
    claim = job_queue.claim_next_job(worker=worker)
    if claim is None:
        return False
    try:
        with _holding(claim) as hold:
            _run(claim, hold)
    except LeaseLostError:  # deleted, or taken over: whatever was done since is nobody's
        log.info("lease_lost", job=str(claim.job.id), fence=claim.fence)
    return True


@functools.cache
def loaded_models() -> Models:
    """The models of this process, loaded on its first job (never before a fork, never at import).

    One core is left to everything else unless the settings say otherwise. Raises ModelError.
    """
    settings = engine_settings()
    if not settings.threads:
        threads = max(1, len(os.sched_getaffinity(0)) - 1)
        settings = settings.model_copy(update={"threads": threads})
    return Models(
        model=registry.batch_model(settings),
        finder=registry.speech_finder(settings),
        lm=registry.language_model(settings),
    )


@functools.cache
def loaded_diariser() -> SpeakerDiariser | None:
    """What tells speakers apart, loaded for the first job that asks for it. Raises ModelError."""
    return registry.speaker_diariser(engine_settings())


def refine_live_now(worker: str) -> None:
    """Hear closed utterances of live sessions again, where any wait, under the name `worker`."""
    _live_refiner(worker).take_turn(must_stop=ENDING.is_set)


def _live_refiner(worker: str) -> LiveRefiner:
    return LiveRefiner(worker=worker, load=loaded_models)


def _run(claim: Claim, hold: _Hold) -> None:
    pace, refiner = LivePace(), _live_refiner(claim.worker)

    def should_stop() -> bool:
        refiner.take_turn_between(must_stop=hold.must_stop)
        return pace.wait_for_live(stop=hold.must_stop) or hold.must_stop()

    try:
        found = work_on(
            claim,
            models=loaded_models(),
            load_diariser=loaded_diariser,
            slice_s=SLICE_S,
            should_stop=should_stop,
        )
    except CancelledError:
        if hold.is_lost:
            raise LeaseLostError from None
        if hold.is_cancelled:
            jobs.end_cancelled_job(claim=claim)
        else:
            jobs.requeue_job(claim=claim)
    except FileNotFoundError:
        _fail(claim, MISSING_CODE, MISSING_PROBLEM, is_retryable=False)
    except EngineError as error:
        _fail(claim, error.code, error.sentence, is_retryable=error.is_retryable)
    except LeaseLostError:
        raise
    except Exception as error:  # noqa: BLE001 - a task's border; a model may raise anything
        # Its text could quote the recording, so only its kind is logged.
        log.error(  # noqa: TRY400 - no traceback for the same reason
            "job_failed", job=str(claim.job.id), error=type(error).__name__
        )
        _fail(claim, INTERNAL_CODE, INTERNAL_PROBLEM, is_retryable=True)
    else:
        if found is None:
            jobs.requeue_job(claim=claim)
        else:
            jobs.finish_job(
                claim=claim,
                model_name=loaded_models().model.name,
                spoken=found.spoken,
                notice=found.notice,
            )


def _fail(claim: Claim, code: str, problem: str, *, is_retryable: bool) -> None:
    jobs.fail_attempt(claim=claim, code=code, problem=problem, is_retryable=is_retryable)


class _Hold:
    """Renews the lease from a thread of its own, and hears what becomes of the job."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._done = threading.Event()
        self._lost = threading.Event()
        self._cancelled = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="lease", daemon=True)

    @property
    def is_lost(self) -> bool:
        return self._lost.is_set()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def must_stop(self) -> bool:
        return self.is_lost or self.is_cancelled or ENDING.is_set()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    def _beat(self) -> None:
        try:
            while not self._done.wait(BEAT_S):
                try:
                    if ENDING.is_set():
                        # No failure of the job, however the process ends. Its checkpoint stands.
                        jobs.requeue_job(claim=self._claim)
                        self._lost.set()
                        return
                    if jobs.renew_lease(claim=self._claim):
                        self._cancelled.set()
                except LeaseLostError:
                    self._lost.set()
                    return
                except DatabaseError:  # the next beat tries again; the lease lasts for many
                    log.warning("lease_not_renewed", job=str(self._claim.job.id))
                    close_old_connections()
        finally:
            connection.close()  # this thread's own


@contextmanager
def _holding(claim: Claim) -> Iterator[_Hold]:
    hold = _Hold(claim)
    hold.start()
    try:
        yield hold
    finally:
        hold.stop()
