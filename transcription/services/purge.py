"""The purge: ends what the planner says is due, one thing a transaction, under a lease and a fence.

A thing's end, its line in the audit log, the report's figures and the check that this worker still
holds the run are one transaction; bytes and keys follow by `remains`. So a purge may be killed at
any point, and another goes on from what the rows say. Before each end the rules are asked once more
about the thing as it is then: it may have been restored, held or taken up by a job meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from transcription.errors import LeaseLostError
from transcription.models import LiveSession, PurgeRun, Recording, Upload, WebhookEvent
from transcription.queue import Task, send
from transcription.services import remains, retention, trash, webhooks
from transcription.services.purge_plan import Step, ThingKind, due_steps_at
from transcription.services.retention_rules import Ending, RuleBook
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act

log = structlog.get_logger(__name__)

LEASE: Final = timedelta(minutes=5)
SLICE: Final = timedelta(minutes=2)
"""How long a chore works on it before other chores get their turn."""
LONGEST_PAUSE: Final = timedelta(days=3)
"""Between two purges. After a longer one the clock may be wrong, and everything would look old."""
SETTLED: Final = timedelta(hours=20)

CLOCK_PROBLEM: Final = (
    "The clock has moved on by more than three days since the purge before, so nothing was "
    "deleted. If the date of this server is right, the next night's purge goes on."
)
RULES_PROBLEM: Final = (
    "A retention policy has days that no policy may have, so nothing was deleted."
)
SKIPPED_PROBLEM: Final = (
    "Some things could not be deleted, and are tried again the next night. The log says which."
)


@dataclass(slots=True)
class Hold:
    """A worker's hold on the open run; `counts` as they stand in its row."""

    run: PurgeRun
    counts: Counter[str]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a purge at one moment would do; with a `problem`, nothing."""

    steps: tuple[Step, ...]
    problem: str = ""


def counts_of(step: Step) -> dict[str, int]:
    """The step's part of a report."""
    if step.kind is not ThingKind.RECORDING:
        return {f"{step.kind}s": 1}
    if step.ending is Ending.TRASH:
        return {"trashed": 1}
    name = "audio" if step.ending is Ending.AUDIO else "deleted"
    return {name: 1, f"{name}_bytes": step.size_bytes}


def dry_run(now: datetime) -> Finding:
    """What a purge that begins now would do. Changes nothing."""
    problem = _problem_at(now, PurgeRun.objects.filter(is_open=False).first())
    return Finding((), problem) if problem else Finding(tuple(due_steps_at(now, _book(now))))


def purge_if_due() -> None:
    """The chore: begin the night's purge, or go on with one that was given back or died."""
    remains.remove_remains()
    if not _is_due(timezone.now()):
        return
    hold = begin_purge()
    if hold is not None and not work_on(hold, until=timezone.now() + SLICE):
        send(Task.PURGE)


def purge_now() -> PurgeRun | None:
    """A whole purge, or the rest of one that died; None while another worker is at it."""
    hold = begin_purge()
    if hold is None:
        return None
    work_on(hold)
    hold.run.refresh_from_db()
    return hold.run


def begin_purge() -> Hold | None:
    """Open a run, or take the open one on where its lease has run out; None where it is held."""
    now = timezone.now()
    try:
        with transaction.atomic():
            run = PurgeRun.objects.create(started_at=now, lease_expires_at=now + LEASE)
    except IntegrityError:
        is_free = Q(lease_expires_at=None) | Q(lease_expires_at__lte=now)
        with transaction.atomic():
            if not PurgeRun.objects.filter(is_free, is_open=True).update(
                fence=F("fence") + 1, lease_expires_at=now + LEASE
            ):
                return None
            run = PurgeRun.objects.get(is_open=True)
    return Hold(run, Counter(run.counts))


def work_on(hold: Hold, *, until: datetime | None = None) -> bool:
    """End what was due when the run began; False where `until` came first: it was given back.

    Raises LeaseLostError where another worker has taken the run on.
    """
    began_at = hold.run.started_at
    before = PurgeRun.objects.filter(id__lt=hold.run.pk).first()
    problem = _problem_at(began_at, before)
    if not problem:
        book = _book(began_at)
        for step in due_steps_at(began_at, book):
            if until is not None and timezone.now() >= until:
                _write(hold, lease_expires_at=None)
                return False
            try:
                _take(hold, step, book)
            except DatabaseError as error:
                problem = SKIPPED_PROBLEM
                log.error(  # noqa: TRY400 - its text could quote the row
                    "purge_step_failed",
                    kind=step.kind,
                    thing=str(step.id),
                    error=type(error).__name__,
                )
    remains.remove_remains()
    with transaction.atomic():
        _write(
            hold,
            is_open=False,
            lease_expires_at=None,
            finished_at=timezone.now(),
            problem=problem,
        )
        detail: dict[str, str | int | bool | None] = {**hold.counts}
        if problem:
            detail["problem"] = problem
        if any(detail.values()):  # a night in which nothing ended has its report, and that will do
            record_act(act=Act.PURGED, actor=None, on=hold.run, detail=detail)
    log.info("purge_finished", run=hold.run.pk, has_problem=bool(problem), **hold.counts)
    return True


def _is_due(now: datetime) -> bool:
    """Where one is open, or none has begun since last night. A run of the future is of a wrong
    clock, and does not count."""
    newest = PurgeRun.objects.first()
    if newest is None or newest.is_open:
        return True
    last_night = retention.next_night(now) - retention.DAY
    return not last_night <= newest.started_at <= now


def _problem_at(began_at: datetime, before: PurgeRun | None) -> str:
    """Why a purge that began then should delete nothing."""
    try:
        _book(began_at)
    except ValueError:
        return RULES_PROBLEM
    if before is None:
        return ""
    pause = began_at - before.started_at
    is_unsettled = before.problem == CLOCK_PROBLEM and timedelta(0) <= pause < SETTLED
    return CLOCK_PROBLEM if pause > LONGEST_PAUSE or is_unsettled else ""


def _book(at: datetime) -> RuleBook:
    return retention.rule_book(at)


def _take(hold: Hold, step: Step, book: RuleBook) -> None:
    """End one thing, if it is still due. Raises LeaseLostError, and nothing has happened."""
    with transaction.atomic():
        if _lock(step) and step in due_steps_at(hold.run.started_at, book, only=step.id):
            _end(step)
            _write(hold, hold.counts + Counter(counts_of(step)))
    remains.remove_remains(step.id)


def _lock(step: Step) -> bool:
    """Nobody else changes the thing until the transaction's end; False where it is gone."""
    rows: QuerySet[Recording] | QuerySet[LiveSession] | QuerySet[Upload]
    match step.kind:
        case ThingKind.RECORDING:
            rows = Recording.objects.filter(id=step.id)
        case ThingKind.SESSION:
            rows = LiveSession.objects.filter(id=step.id)
        case ThingKind.UPLOAD:
            rows = Upload.objects.filter(id=step.id)
    return rows.select_for_update().first() is not None


def _end(step: Step) -> None:
    now = timezone.now()
    match step.kind, step.ending:
        case ThingKind.RECORDING, Ending.TRASH:
            recording = Recording.objects.get(id=step.id)
            record_act(act=Act.TRASHED, actor=None, on=recording)
            trash.put_into_trash(recording, trashed_by=None, at=now)
        case ThingKind.RECORDING, Ending.AUDIO:
            recording = Recording.objects.get(id=step.id)
            _tell(recording, step)
            trash.remove_audio(recording, at=now)
        case ThingKind.RECORDING, _:
            recording = Recording.objects.get(id=step.id)
            _tell(recording, step)
            trash.end_recording(recording)
        case ThingKind.SESSION, _:
            session = LiveSession.objects.get(id=step.id)
            record_act(act=Act.PURGED, actor=None, on=session)
            remains.leave_remains(session.id)
            session.delete()
        case ThingKind.UPLOAD, _:
            upload = Upload.objects.get(id=step.id)
            record_act(act=Act.PURGED, actor=None, on=upload)
            remains.leave_remains(upload.id)
            upload.delete()


def _tell(recording: Recording, step: Step) -> None:
    """The audit log, and the webhooks of its owner."""
    what = "audio" if step.ending is Ending.AUDIO else "recording"
    record_act(act=Act.PURGED, actor=None, on=recording, detail={"what": what})
    webhooks.announce(
        event=WebhookEvent.RETENTION_PURGED,
        owner_id=recording.owner_id,
        subject=f"{recording.id}.{what}",
        data={"recording": str(recording.id), "what": what},
    )


def _write(hold: Hold, counts: Mapping[str, int] | None = None, **fields: object) -> None:
    """Only while the run is ours: all that was done in the same transaction stands or falls with
    it. Raises LeaseLostError."""
    mine = PurgeRun.objects.filter(id=hold.run.pk, fence=hold.run.fence, is_open=True)
    values = {"lease_expires_at": timezone.now() + LEASE, **fields}
    if counts is not None:
        values["counts"] = dict(counts)
    if not mine.update(**values):
        raise LeaseLostError("Another worker has taken this purge over.")
    if counts is not None:
        hold.counts = Counter(counts)
