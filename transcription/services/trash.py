"""The trash, and the end of a recording: into it, out of it again, and for ever.

What is in the trash is seen by its owner alone. The retention policy says how long it stays there
(`retention_rules`); `purge` calls the same functions as a person's hand.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.utils import timezone

from transcription.broadcast import (
    audience_changed_on_commit,
    links_changed_on_commit,
    recording_changed_on_commit,
)
from transcription.errors import ConflictError, NotFoundError
from transcription.models import Job, Recording
from transcription.services import jobs, purge_plan, remains, retention
from transcription.services.job_states import ACTIVE
from transcription.services.retention_rules import Ending, due_steps
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act, User

RESTORED_FOR: Final = timedelta(days=30)
"""What a policy had put into the trash, and somebody took out again, stays for so long at least."""
HELD: Final = "This recording is on hold, so it cannot be deleted. An administrator may release it."


def trash_recording(*, recording: Recording, trashed_by: User) -> Recording:
    """Move it to the trash, where its owner alone sees it; a transcription is cancelled.

    Harmless for what is there already. Raises ConflictError while it is held, NotFoundError if it
    is gone.
    """
    with transaction.atomic():
        current = _locked(recording)
        if current.is_held:
            raise ConflictError(HELD)
        if current.trashed_at is not None:
            return current
        for job in current.jobs.filter(state__in=ACTIVE):
            jobs.cancel_job(job=job, cancelled_by=trashed_by)
        record_act(act=Act.TRASHED, actor=trashed_by, on=current)
        put_into_trash(current, trashed_by=trashed_by, at=timezone.now())
    return current


def restore_recording(*, recording: Recording, restored_by: User) -> Recording:
    """Take it out of the trash.

    Where a policy would put it there again the next night, it gets a date of its own. Harmless for
    what is not in the trash. Raises NotFoundError if it is gone.
    """
    now = timezone.now()
    with transaction.atomic():
        current = _locked(recording)
        if current.trashed_at is None:
            return current
        current.trashed_at, current.trashed_by = None, None
        current.save(update_fields=["trashed_at", "trashed_by"])
        facts = purge_plan.facts_of(current)
        rules = retention.rule_book(now + timedelta(days=1)).of(current.team_id)
        if Ending.TRASH in due_steps(facts, rules, now + timedelta(days=1)):
            current.expires_at = now + RESTORED_FOR
            current.save(update_fields=["expires_at"])
        record_act(act=Act.RESTORED, actor=restored_by, on=current)
        audience_changed_on_commit(current.id)
    return current


def delete_for_ever(*, recording: Recording, deleted_by: User) -> None:
    """Delete it with its jobs, transcripts, links, upload and bytes, also while a job runs.

    The worker sees that its row is gone, and can store nothing more: each of its writes asks for
    the row first. Harmless where it is gone. Raises ConflictError while it is held.
    """
    with transaction.atomic():
        try:
            current = _locked(recording)
        except NotFoundError:
            return
        if current.is_held:
            raise ConflictError(HELD)
        record_act(act=Act.DELETED, actor=deleted_by, on=current)
        end_recording(current)
    remains.remove_remains(recording.id)


def put_into_trash(recording: Recording, *, trashed_by: User | None, at: datetime) -> None:
    """Inside the caller's transaction; `trashed_by` None: a retention policy."""
    recording.trashed_at, recording.trashed_by = at, trashed_by
    recording.save(update_fields=["trashed_at", "trashed_by"])
    _close_pages_of(recording)


def end_recording(recording: Recording) -> None:
    """Inside the caller's transaction, which removes the remains after it: delete the row and all
    that hangs on it."""
    remains.leave_remains(recording.id)
    _close_pages_of(recording)
    recording.delete()


def remove_audio(recording: Recording, *, at: datetime) -> None:
    """Inside the caller's transaction, which removes the remains after it: the source, what the
    player plays and its waveform. The transcript stays."""
    recording.audio_removed_at = at
    recording.save(update_fields=["audio_removed_at"])
    remains.leave_remains(recording.id)
    recording_changed_on_commit(recording.id)


def _locked(recording: Recording) -> Recording:
    """Nobody else changes it until the transaction's end. Raises NotFoundError if it is gone."""
    # The job first, as its worker does: the other way round the two would wait for each other.
    list(Job.objects.select_for_update().filter(recording_id=recording.id, state__in=ACTIVE))
    current = Recording.objects.select_for_update(of=("self",)).filter(id=recording.id).first()
    if current is None:
        raise NotFoundError
    return current


def _close_pages_of(recording: Recording) -> None:
    """Open pages check their rights again, and close or show how it stands."""
    audience_changed_on_commit(recording.id)
    links_changed_on_commit(recording.id)  # a live session has the id of its recording
