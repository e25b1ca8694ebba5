"""The purge on a clock that stands: nothing younger dies, nothing expired stays, and files and rows
agree."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, transaction

from tests.fakes.clock import DAY, MOMENT, NIGHT, Clock
from tests.fakes.live import make_session
from tests.fakes.recordings import claim_of, make_recording
from transcription.errors import LeaseLostError
from transcription.models import (
    Job,
    JobState,
    LiveSession,
    LiveState,
    PurgeRun,
    Recording,
    RecordingSource,
    RecordingState,
    Remains,
    RetentionPolicy,
    Share,
    Upload,
    UploadState,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
)
from transcription.services import jobs, purge, purge_plan, retention, trash
from transcription.services.purge_plan import ThingKind
from transcription.services.retention_rules import Ending
from webapp.accounts.models import Act, AuditEntry, Team, User

POLICY = {
    "audio_days": 10,
    "live_audio_days": 5,
    "transcript_days": 30,
    "failed_days": 3,
    "trash_days": 7,
}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def policy(db: None) -> RetentionPolicy:
    return RetentionPolicy.objects.create(**POLICY, takes_effect_at=NIGHT - 100 * DAY)


def aged(owner: User, days: float, title: str = "Weekly", **fields: Any) -> Recording:
    """A finished recording that is so many days old at the night of the purge."""
    values = {
        "state": RecordingState.READY,
        "created_at": NIGHT - days * DAY,
        "size_bytes": 1000,
        **fields,
    }
    return make_recording(owner, title=title, **values)


def with_job(recording: Recording, state: JobState, **fields: Any) -> Recording:
    Job.objects.create(recording=recording, state=state, **fields)
    return recording


def all_of(owner: User) -> dict[str, Recording]:
    """One of every kind, by what should become of it this night."""
    failed = {"state": RecordingState.ATTENTION}
    team = Team.objects.create(name="Archive")
    team.members.add(owner)
    RetentionPolicy.objects.create(
        team=team, transcript_days=400, audio_days=400, takes_effect_at=NIGHT - 50 * DAY
    )
    live = {"source": RecordingSource.LIVE}
    made = {
        "stays young": aged(owner, 9),
        "stays to the day": aged(owner, 10 - 1e-9),
        "stays held": aged(owner, 500, is_held=True, trashed_at=NIGHT - 400 * DAY),
        "stays in work": with_job(aged(owner, 500), JobState.RUNNING),
        "stays waiting": with_job(aged(owner, 500), JobState.QUEUED),
        "stays by its own date": aged(owner, 500, expires_at=NIGHT + MOMENT),
        "stays by its team": aged(owner, 390, team=team),
        "stays of the future": aged(owner, -300),
        "stays live and young": aged(owner, 4.9, **live),
        "stays failed but young": with_job(
            aged(owner, 9, **failed), JobState.FAILED, finished_at=NIGHT - 2 * DAY
        ),
        "stays in the trash": aged(owner, 9, trashed_at=NIGHT - 7 * DAY + MOMENT),
        "audio to the day": aged(owner, 10),
        "audio of a live session": aged(owner, 5, **live),
        "audio in the trash": aged(owner, 29, trashed_at=NIGHT - DAY),
        "audio done before": aged(owner, 12, audio_removed_at=NIGHT - DAY),
        "audio shared": aged(owner, 20, is_organisation_wide=True),
        "trash to the day": aged(owner, 30),
        "trash by its own date": aged(owner, 1, expires_at=NIGHT),
        "trash failed": with_job(
            aged(owner, 5, **failed), JobState.FAILED, finished_at=NIGHT - 3 * DAY
        ),
        "trash failed without a date": aged(owner, 5, **failed),
        "trash shared": aged(owner, 40, audio_removed_at=NIGHT - 30 * DAY),
        "delete to the day": aged(owner, 40, trashed_at=NIGHT - 7 * DAY),
        "delete young": aged(owner, 8, trashed_at=NIGHT - 7 * DAY),
    }
    for name, recording in made.items():
        Recording.objects.filter(id=recording.id).update(title=name)
    return made


def check_files_and_rows(media_dir: Path) -> None:
    """A folder for each recording that has its audio, and none else."""
    folders = {folder.name for folder in (media_dir / "recordings").iterdir()}
    assert folders == {str(row.id) for row in Recording.objects.filter(audio_removed_at=None)}
    assert not Remains.objects.exists()


def test_each_thing_meets_the_end_that_its_rules_say(
    alice: User, bob: User, policy: RetentionPolicy, clock: Clock, media_dir: Path
) -> None:
    made = all_of(alice)
    Share.objects.create(recording=made["trash shared"], person=bob)
    run = purge.purge_now()
    assert run is not None
    for name, before in made.items():
        after = Recording.objects.filter(id=before.id).first()
        what = name.split()[0]
        assert (after is None) == (what == "delete"), name
        if after is None:
            continue
        is_new_in_trash = before.trashed_at is None and after.trashed_at is not None
        assert is_new_in_trash == (what == "trash"), name
        had_audio = before.audio_removed_at is None
        loses_audio = what == "audio" or name == "trash to the day"
        assert (after.audio_removed_at is not None) == (loses_audio or not had_audio), name
        assert before.source_path.exists() == (not (loses_audio and had_audio)), name
    check_after = {name: made[name] for name in made}
    for name in ("audio done before", "trash shared"):
        # Their files were never removed by this fixture; the row says that they were.
        check_after[name].folder.rename(media_dir / name)
    check_files_and_rows(media_dir)
    assert run.counts == {
        "audio": 5,
        "audio_bytes": 5000,
        "trashed": 5,
        "deleted": 2,
        "deleted_bytes": 2000,
    }


def test_the_dry_run_is_what_the_purge_does(
    alice: User, policy: RetentionPolicy, clock: Clock
) -> None:
    all_of(alice)
    before = {row.id: row.trashed_at for row in Recording.objects.all()}
    finding = purge.dry_run(clock.now)
    assert {row.id: row.trashed_at for row in Recording.objects.all()} == before
    assert not PurgeRun.objects.exists()
    run = purge.purge_now()
    told = AuditEntry.objects.exclude(subject_kind="purgerun").filter(actor=None)
    done = {
        (
            entry.subject_id,
            Ending.TRASH
            if entry.act == Act.TRASHED
            else {"audio": Ending.AUDIO, "recording": Ending.DELETE}[entry.detail["what"]],
        )
        for entry in told
    }
    assert done == {(str(step.id), step.ending) for step in finding.steps}
    counts: dict[str, int] = {}
    for step in finding.steps:
        for name, value in purge.counts_of(step).items():
            counts[name] = counts.get(name, 0) + value
    assert run is not None
    assert run.counts == counts
    assert purge.dry_run(clock.now).steps == ()


def test_the_preview_of_tonight_is_what_the_purge_does(
    alice: User, policy: RetentionPolicy, clock: Clock
) -> None:
    all_of(alice)
    Job.objects.filter(state__in=(JobState.RUNNING, JobState.QUEUED)).delete()
    clock.move(-DAY / 2)
    night = retention.next_night(clock.now)
    assert night == NIGHT
    (shown,) = purge_plan.preview([(night, retention.rule_book(night))])
    clock.move(DAY / 2)
    run = purge.purge_now()
    assert run is not None
    assert run.counts == {
        "audio": shown.audio,
        "audio_bytes": shown.audio_bytes,
        "trashed": shown.trashed,
        "deleted": shown.deleted,
        "deleted_bytes": shown.deleted_bytes,
    }


def test_night_after_night_everything_ends_on_the_day_that_the_preview_said(
    alice: User, policy: RetentionPolicy, clock: Clock
) -> None:
    for days in range(45):
        aged(alice, days, audio_removed_at=None)
    nights = [NIGHT + number * DAY for number in range(20)]
    shown = purge_plan.preview([(night, retention.rule_book(night)) for night in nights])
    for night in shown:
        clock.now = night.at
        run = purge.purge_now()
        assert run is not None
        assert run.problem == ""
        figures = (run.counts.get(name, 0) for name in ("audio", "trashed", "deleted"))
        assert tuple(figures) == (night.audio, night.trashed, night.deleted)


def test_a_second_purge_finds_nothing(alice: User, policy: RetentionPolicy, clock: Clock) -> None:
    all_of(alice)
    purge.purge_now()
    run = purge.purge_now()
    assert run is not None
    assert run.counts == {}


def test_without_any_policy_only_the_trash_is_emptied(alice: User, clock: Clock) -> None:
    old = aged(alice, 5000)
    aged(alice, 5000, trashed_at=NIGHT - 30 * DAY)
    kept = aged(alice, 5000, trashed_at=NIGHT - 30 * DAY + MOMENT)
    purge.purge_now()
    assert set(Recording.objects.all()) == {old, kept}


def test_a_policy_counts_from_its_moment_and_not_before(alice: User, clock: Clock) -> None:
    aged(alice, 100, audio_removed_at=NIGHT)
    RetentionPolicy.objects.create(transcript_days=30, takes_effect_at=NIGHT + MOMENT)
    assert purge.dry_run(NIGHT).steps == ()
    assert len(purge.dry_run(NIGHT + MOMENT).steps) == 1


def test_of_several_policies_the_one_counts_that_took_effect_last(
    alice: User, clock: Clock
) -> None:
    aged(alice, 100, audio_removed_at=NIGHT)
    RetentionPolicy.objects.create(transcript_days=30, takes_effect_at=NIGHT - 9 * DAY)
    RetentionPolicy.objects.create(transcript_days=None, takes_effect_at=NIGHT - 2 * DAY)
    RetentionPolicy.objects.create(transcript_days=40, takes_effect_at=NIGHT - 5 * DAY)
    assert purge.dry_run(NIGHT).steps == ()


@pytest.mark.parametrize("days", [0, -1])
def test_the_database_refuses_days_below_one(db: None, days: int) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        RetentionPolicy.objects.create(transcript_days=days)


def test_days_that_no_policy_may_have_delete_nothing(alice: User, clock: Clock) -> None:
    aged(alice, 100_000 / 24, trashed_at=NIGHT - 500 * DAY)
    RetentionPolicy.objects.create(transcript_days=99_999_999, takes_effect_at=NIGHT)
    assert purge.dry_run(NIGHT).problem == purge.RULES_PROBLEM
    run = purge.purge_now()
    assert run is not None
    assert (run.problem, run.counts) == (purge.RULES_PROBLEM, {})
    assert Recording.objects.exists()


# What never became a recording --------------------------------------------------------------------


def test_sessions_without_audio_go_with_the_transcripts(
    alice: User, policy: RetentionPolicy, clock: Clock
) -> None:
    def ended(days: float, **fields: Any) -> LiveSession:
        session = make_session(alice)
        values = {"state": LiveState.ENDED, "ended_at": NIGHT - days * DAY, **fields}
        LiveSession.objects.filter(id=session.id).update(**values)
        session.folder.mkdir(parents=True)
        return session

    old = ended(30)
    dateless = ended(0, ended_at=None, created_at=NIGHT - 30 * DAY)
    kept = {
        ended(29.9),
        *(ended(99, state=state) for state in LiveState if state != LiveState.ENDED),
    }
    steps = purge.dry_run(NIGHT).steps
    assert {(step.kind, step.id) for step in steps} == {
        (ThingKind.SESSION, session.id) for session in (old, dateless)
    }
    run = purge.purge_now()
    assert run is not None
    assert run.counts == {"sessions": 2}
    assert set(LiveSession.objects.all()) == kept
    assert not old.folder.exists()
    assert all(session.folder.exists() for session in kept)


def test_refused_uploads_are_forgotten_as_failures_are(
    alice: User, policy: RetentionPolicy, clock: Clock
) -> None:
    def upload(state: UploadState, days: float) -> Upload:
        return Upload.objects.create(
            owner=alice,
            display_name="a.wav",
            length_bytes=1,
            state=state,
            touched_at=NIGHT - days * DAY,
        )

    upload(UploadState.REFUSED, 3)
    kept = {upload(UploadState.REFUSED, 2.9)} | {
        upload(state, 99) for state in UploadState if state != UploadState.REFUSED
    }
    purge.purge_now()
    assert set(Upload.objects.all()) == kept


# In flight, and what changes meanwhile ------------------------------------------------------------


def test_what_changes_while_a_purge_runs_is_judged_as_it_is_then(
    alice: User, policy: RetentionPolicy, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = sorted(
        (aged(alice, 99, audio_removed_at=NIGHT) for _ in range(3)), key=lambda one: one.id
    )
    end = purge._end

    def end_and_change(step: purge_plan.Step) -> None:
        end(step)
        Recording.objects.filter(id=second.id).update(is_held=True)
        Job.objects.get_or_create(recording=third)

    monkeypatch.setattr(purge, "_end", end_and_change)
    run = purge.purge_now()
    assert run is not None
    assert run.counts == {"trashed": 1}
    assert list(Recording.objects.exclude(trashed_at=None)) == [first]


def test_a_job_that_ends_leaves_its_recording_to_the_next_night(
    alice: User, policy: RetentionPolicy, clock: Clock
) -> None:
    recording = with_job(aged(alice, 99, audio_removed_at=NIGHT), JobState.QUEUED)
    claim = claim_of()
    purge.purge_now()
    recording.refresh_from_db()
    assert recording.trashed_at is None
    jobs.finish_job(claim=claim, model_name="scripted")
    clock.move(DAY)
    purge.purge_now()
    recording.refresh_from_db()
    assert recording.trashed_at is not None


def test_without_audio_it_is_not_transcribed_again(
    alice: User, policy: RetentionPolicy, clock: Clock
) -> None:
    recording = aged(alice, 12)
    purge.purge_now()
    with pytest.raises(jobs.ConflictError, match="audio of this recording was removed"):
        jobs.retry_job(recording=recording, requested_by=alice)


def test_what_cannot_be_ended_does_not_keep_the_others(
    alice: User, policy: RetentionPolicy, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    stubborn, other = sorted(
        (aged(alice, 99, trashed_at=NIGHT - 9 * DAY) for _ in range(2)), key=lambda one: one.id
    )
    end = trash.end_recording

    def fail(recording: Recording) -> None:
        if recording.id == stubborn.id:
            raise DatabaseError("no")
        end(recording)

    monkeypatch.setattr(trash, "end_recording", fail)
    run = purge.purge_now()
    assert run is not None
    assert run.problem == purge.SKIPPED_PROBLEM
    assert run.counts == {"deleted": 1, "deleted_bytes": 1000}
    assert stubborn.source_path.exists()
    assert not other.folder.exists()


# Report -------------------------------------------------------------------------------------------


def test_each_deletion_and_each_run_is_told(
    alice: User, policy: RetentionPolicy, clock: Clock
) -> None:
    gone = aged(alice, 99, trashed_at=NIGHT - 9 * DAY)
    quiet = Webhook.objects.create(owner=alice, name="A", url="https://a.example", events=[])
    heard = Webhook.objects.create(
        owner=alice, name="B", url="https://b.example", events=[WebhookEvent.RETENTION_PURGED]
    )
    run = purge.purge_now()
    assert run is not None
    told = AuditEntry.objects.filter(act=Act.PURGED, actor=None).order_by("id")
    assert [(entry.subject_id, entry.detail) for entry in told] == [
        (str(gone.id), {"what": "recording"}),
        (str(run.pk), run.counts),
    ]
    delivery = WebhookDelivery.objects.get()
    assert delivery.webhook == heard != quiet
    assert str(gone.id) in str(delivery.payload)
    assert "Weekly" not in str(delivery.payload)


def test_a_purge_that_ends_nothing_is_not_told(policy: RetentionPolicy, clock: Clock) -> None:
    assert purge.purge_now() is not None
    assert not AuditEntry.objects.exists()


# The clock ----------------------------------------------------------------------------------------


def test_a_clock_that_jumped_ahead_deletes_nothing_that_night(
    alice: User, policy: RetentionPolicy, clock: Clock
) -> None:
    recording = aged(alice, 1)
    purge.purge_now()
    clock.move(365 * DAY)
    assert purge.dry_run(clock.now).problem == purge.CLOCK_PROBLEM
    run = purge.purge_now()
    assert run is not None
    assert (run.problem, run.counts) == (purge.CLOCK_PROBLEM, {})
    clock.move(timedelta(hours=1))
    assert purge.purge_now().problem == purge.CLOCK_PROBLEM  # type: ignore[union-attr]
    clock.now = NIGHT + DAY  # somebody mended it
    assert purge.purge_now().problem == ""  # type: ignore[union-attr]
    assert recording.source_path.exists()


def test_after_a_long_pause_the_second_night_goes_on(
    alice: User, policy: RetentionPolicy, clock: Clock
) -> None:
    aged(alice, 1)
    purge.purge_now()
    clock.move(365 * DAY)
    purge.purge_now()
    clock.move(DAY)
    run = purge.purge_now()
    assert run is not None
    assert (run.problem, run.counts["audio"]) == ("", 1)


def test_a_clock_that_went_back_ends_nothing_young(
    alice: User, policy: RetentionPolicy, clock: Clock
) -> None:
    aged(alice, 20)
    purge.purge_now()
    clock.move(-300 * DAY)
    run = purge.purge_now()
    assert run is not None
    assert (run.problem, run.counts) == ("", {})


def test_a_purge_is_due_once_a_night_and_caught_up_on(db: None, clock: Clock) -> None:
    clock.now = NIGHT - timedelta(minutes=1)
    purge.purge_now()
    purge.purge_if_due()
    assert PurgeRun.objects.count() == 1
    clock.now = NIGHT
    purge.purge_if_due()
    purge.purge_if_due()
    assert PurgeRun.objects.count() == 2
    clock.move(1.7 * DAY)  # the machine was off at night
    purge.purge_if_due()
    assert PurgeRun.objects.count() == 3


def test_a_run_of_a_wrong_future_does_not_put_the_next_ones_off(db: None, clock: Clock) -> None:
    clock.move(365 * DAY)
    purge.purge_now()
    clock.now = NIGHT
    purge.purge_if_due()
    purge.purge_if_due()
    assert PurgeRun.objects.count() == 2


# Several, and killed ones -------------------------------------------------------------------------


def test_while_one_is_at_work_another_finds_it_taken(db: None, clock: Clock) -> None:
    assert purge.begin_purge() is not None
    assert purge.begin_purge() is None
    assert purge.purge_now() is None
    clock.move(purge.LEASE - MOMENT)
    assert purge.begin_purge() is None


def test_a_dead_one_s_run_is_taken_on_with_its_figures(
    alice: User, policy: RetentionPolicy, clock: Clock
) -> None:
    for _ in range(3):
        aged(alice, 99, trashed_at=NIGHT - 9 * DAY)
    dead = purge.begin_purge()
    assert dead is not None
    step = purge.dry_run(NIGHT).steps[0]
    purge._take(dead, step, retention.rule_book(NIGHT))
    clock.move(purge.LEASE)
    run = purge.purge_now()
    assert run is not None
    assert run.pk == dead.run.pk
    assert run.counts == {"deleted": 3, "deleted_bytes": 3000}
    assert run.finished_at is not None


def test_who_lost_the_lease_changes_nothing_more(
    alice: User, policy: RetentionPolicy, clock: Clock
) -> None:
    recording = aged(alice, 99, trashed_at=NIGHT - 9 * DAY)
    slow = purge.begin_purge()
    assert slow is not None
    clock.move(purge.LEASE)
    successor = purge.begin_purge()
    assert successor is not None
    with pytest.raises(LeaseLostError):
        purge.work_on(slow)
    assert recording.source_path.exists()
    assert not AuditEntry.objects.filter(act=Act.PURGED).exists()
    assert not Remains.objects.exists()
    assert purge.work_on(successor)
    assert not Recording.objects.exists()


def test_a_long_purge_gives_others_their_turn_and_goes_on(
    alice: User,
    policy: RetentionPolicy,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    sent: list[tuple[str, ...]],
) -> None:
    for _ in range(3):
        aged(alice, 99, trashed_at=NIGHT - 9 * DAY)
    with monkeypatch.context() as short:
        short.setattr(purge, "SLICE", timedelta(0))
        purge.purge_if_due()
    assert ("transcription.purge",) in sent
    assert Recording.objects.count() == 3
    purge.purge_if_due()
    assert not Recording.objects.exists()
    assert not PurgeRun.objects.get().is_open
