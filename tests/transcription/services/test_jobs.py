"""Jobs: claimed once, fenced, resumed at the checkpoint, ended in one way, deleted at any time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from asr_engine.results import LanguageGuess
from tests.fakes.recordings import (
    change_job,
    claim_of,
    expire_lease,
    make_job,
    make_recording,
    progress,
    segment,
)
from transcription.errors import ConflictError, LeaseLostError
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
from transcription.services import job_queue, job_states, jobs, transcripts, trash
from transcription.services.job_options import JobOptions
from transcription.services.job_queue import Claim
from webapp.accounts.models import User

DRAFT, REFINED = RevisionKind.DRAFT, RevisionKind.REFINED


def texts(recording: Recording) -> list[str]:
    recording.refresh_from_db()
    revision = transcripts.current_revision(recording)
    return [] if revision is None else [found.text for found in transcripts.segments_of(revision)]


def store(claim: Claim, kind: RevisionKind, *words: str, done_ms: int = 30_000) -> None:
    jobs.store_progress(claim=claim, progress=progress(*words, kind=kind, done_ms=done_ms))


def finish(job: Job, *words: str) -> None:
    claim = claim_of()
    assert claim.job == job
    store(claim, DRAFT, *words)
    store(claim, REFINED, *words)
    jobs.finish_job(claim=claim, model_name="scripted")


def test_submitting_queues_wakes_and_tells_the_page(
    alice: User,
    sent: list[tuple[str, ...]],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    recording = make_recording(alice, state=RecordingState.ATTENTION, problem="Old.")
    with django_capture_on_commit_callbacks(execute=True) as callbacks:
        job = jobs.submit_job(recording=recording, requested_by=alice, language="en")
    recording.refresh_from_db()
    assert (job.state, job.language, job.audio_total_ms) == (JobState.QUEUED, "en", 60_000)
    assert (recording.state, recording.problem) == (RecordingState.QUEUED, "")
    assert sent == [("transcription.run_jobs",)]
    assert len(callbacks) == 2  # the wake-up and the page


def test_a_recording_has_one_active_job(alice: User) -> None:
    job = make_job(alice)
    assert jobs.submit_job(recording=job.recording, requested_by=alice) == job
    with pytest.raises(ConflictError):
        jobs.retry_job(recording=job.recording, requested_by=alice)


def test_the_transcript_grows_group_by_group_and_is_shown(alice: User) -> None:
    job = make_job(alice)
    claim = claim_of()
    store(claim, DRAFT, "one", "two")
    assert texts(job.recording) == ["one", "two"]
    store(claim, DRAFT, "three", done_ms=60_000)
    assert texts(job.recording) == ["one", "two", "three"]
    job.refresh_from_db()
    assert job.checkpoint == {"next_sample": 960_000}
    assert (job.audio_done_ms, job.work_seconds) == (60_000, 4.0)
    assert (job.recording.language, job.recording.language_confidence) == ("en", 0.98)
    revision = TranscriptRevision.objects.get()
    assert (revision.kind, revision.is_complete) == (DRAFT, False)


def test_refined_text_takes_the_place_of_the_draft_as_far_as_it_reaches(alice: User) -> None:
    job = make_job(alice)
    claim = claim_of()
    store(claim, DRAFT, "one", "too")
    store(claim, REFINED, "One two.")
    assert texts(job.recording) == ["One two."]
    store(claim, DRAFT, "tree", done_ms=60_000)
    assert texts(job.recording) == ["One two.", "tree"]
    store(claim, REFINED, "Three", "four.", done_ms=60_000)
    assert texts(job.recording) == ["One two.", "Three", "four."]


def test_a_finished_job_leaves_two_complete_revisions_and_shows_the_refined_one(
    alice: User,
) -> None:
    job = make_job(alice)
    claim = claim_of()
    store(claim, DRAFT, "one too")
    store(claim, REFINED, "One two.")
    jobs.finish_job(claim=claim, model_name="scripted")
    job.refresh_from_db()
    job.recording.refresh_from_db()
    assert (job.state, job.recording.state) == (JobState.DONE, RecordingState.READY)
    assert job.finished_at is not None
    assert Attempt.objects.get().outcome == "done"
    kinds = TranscriptRevision.objects.values_list("kind", "is_complete", "segments__text")
    assert list(kinds) == [(DRAFT, True, "one too"), (REFINED, True, "One two.")]
    assert texts(job.recording) == ["One two."]


def test_a_job_of_the_draft_pass_alone_shows_its_draft(alice: User) -> None:
    job = make_job(alice)
    change_job(job, is_draft_only=True)
    claim = claim_of()
    store(claim, DRAFT, "one too")
    jobs.finish_job(claim=claim, model_name="scripted")
    assert texts(job.recording) == ["one too"]
    assert TranscriptRevision.objects.get().is_complete


def test_a_segment_keeps_its_speaker_its_mark_and_a_language_of_its_own(alice: User) -> None:
    make_job(alice, mixes_languages=True)
    claim = claim_of()
    said = [
        replace(segment("Good morning"), language="en", speaker="left"),
        replace(segment("Guten Morgen", 2000), language="de", speaker="right"),
        replace(segment("", 4000), mark="unclear"),
    ]
    revision = jobs.store_progress(claim=claim, progress=replace(progress(), segments=said))
    later = replace(progress(done_ms=60_000), language=LanguageGuess("de", 0.9))
    assert jobs.store_progress(claim=claim, progress=later).language == "en"
    stored = list(revision.segments.values_list("language", "speaker", "mark"))
    assert stored == [("", "left", ""), ("de", "right", ""), ("", "", "unclear")]
    heard = transcripts.segments_of(revision)
    assert [found.language for found in heard] == ["en", "de", "en"]
    assert [found.mark for found in heard] == [None, None, "unclear"]


def test_text_is_complete_before_speakers_are_looked_for(alice: User) -> None:
    job = make_job(alice)
    claim = claim_of()
    store(claim, DRAFT, "one too", done_ms=60_000)
    store(claim, REFINED, "One two.", done_ms=60_000)
    jobs.begin_speakers(claim=claim, model_name="scripted")
    job.refresh_from_db()
    assert (job.stage, job.checkpoint, job.audio_done_ms) == (jobs.SPEAKERS, {}, 0)
    assert not job.revisions.filter(is_complete=False).exists()
    jobs.store_hearing(claim=claim, checkpoint={"at": 1}, audio_done_ms=9_000, work_seconds=1.0)
    job.refresh_from_db()
    assert (job.checkpoint, job.audio_done_ms, job.work_seconds) == ({"at": 1}, 9_000, 5.0)
    jobs.cancel_job(job=job, cancelled_by=alice)
    jobs.end_cancelled_job(claim=claim)
    job.recording.refresh_from_db()
    assert job.recording.state == RecordingState.READY
    assert texts(job.recording) == ["One two."]


def test_segments_with_speakers_take_the_place_of_those_without(alice: User) -> None:
    job = make_job(alice)
    claim = claim_of()
    store(claim, DRAFT, "one too")
    store(claim, REFINED, "One two.")
    revision = jobs.begin_speakers(claim=claim, model_name="scripted")
    spoken = [
        replace(segment("One"), speaker="1"),
        replace(segment("two.", 1000), speaker="2"),
    ]
    jobs.finish_job(claim=claim, model_name="scripted", spoken=spoken)
    stored = transcripts.current_revision(Recording.objects.get())
    assert stored is not None
    assert (stored, stored.number > revision.number) == (revision, True)
    assert list(stored.segments.values_list("text", "speaker")) == [("One", "1"), ("two.", "2")]
    job.refresh_from_db()
    assert job.state == JobState.DONE


def test_where_speakers_cannot_be_told_apart_the_owner_learns_it(alice: User) -> None:
    job = make_job(alice)
    claim = claim_of()
    store(claim, REFINED, "One two.")
    jobs.finish_job(claim=claim, model_name="scripted", notice=jobs.NO_SPEAKERS_NOTICE)
    job.recording.refresh_from_db()
    assert job.recording.notice == jobs.NO_SPEAKERS_NOTICE
    finish(jobs.retry_job(recording=job.recording, requested_by=alice), "One two.")
    job.recording.refresh_from_db()
    assert job.recording.notice == ""


def test_a_slice_gives_the_job_back_with_its_checkpoint(alice: User) -> None:
    make_job(alice)
    first = claim_of()
    jobs.store_progress(claim=first, progress=progress("one"))
    jobs.requeue_job(claim=first)
    second = claim_of("jobs@two")
    assert second.fence == 2
    assert second.job.checkpoint == {"next_sample": 480_000}
    assert list(Attempt.objects.values_list("outcome", flat=True)) == ["requeued", ""]


def test_who_lost_the_lease_changes_nothing(alice: User) -> None:
    job = make_job(alice)
    old = claim_of("jobs@one")
    expire_lease(job)
    assert job_queue.reap_jobs() == 1
    new = claim_of("jobs@two")
    for act in (
        lambda: jobs.store_progress(claim=old, progress=progress("stale")),
        lambda: jobs.renew_lease(claim=old),
        lambda: jobs.begin_speakers(claim=old, model_name="scripted"),
        lambda: jobs.store_hearing(claim=old, checkpoint={}, audio_done_ms=0, work_seconds=0.0),
        lambda: jobs.requeue_job(claim=old),
        lambda: jobs.finish_job(claim=old, model_name="scripted"),
        lambda: jobs.end_cancelled_job(claim=old),
        lambda: jobs.fail_attempt(claim=old, code="x", problem="X.", is_retryable=False),
    ):
        with pytest.raises(LeaseLostError):
            act()
    assert not TranscriptSegment.objects.exists()
    jobs.store_progress(claim=new, progress=progress("right"))
    assert texts(job.recording) == ["right"]


def test_a_failure_is_tried_again_after_a_pause_that_grows(alice: User) -> None:
    job = make_job(alice)
    for _ in range(2):
        jobs.fail_attempt(claim=claim_of(), code="internal", problem="Oh.", is_retryable=True)
    job.refresh_from_db()
    assert (job.state, job.problem) == (JobState.QUEUED, "")
    assert job_queue.claim_next_job(worker="jobs@one") is None
    change_job(job, last_slice_at=timezone.now() - job_states.RETRY_DELAYS[-1])
    jobs.fail_attempt(claim=claim_of(), code="internal", problem="Oh.", is_retryable=True)
    job.recording.refresh_from_db()
    assert (job.recording.state, job.recording.problem) == (RecordingState.ATTENTION, "Oh.")


def test_what_cannot_be_mended_fails_at_once(alice: User) -> None:
    job = make_job(alice)
    jobs.fail_attempt(claim=claim_of(), code="broken", problem="Broken.", is_retryable=False)
    job.refresh_from_db()
    assert (job.state, job.problem_code) == (JobState.FAILED, "broken")


def test_a_waiting_job_is_cancelled_at_once(alice: User) -> None:
    job = jobs.cancel_job(job=make_job(alice), cancelled_by=alice)
    assert job.state == JobState.CANCELLED
    job.recording.refresh_from_db()
    assert job.recording.state == RecordingState.ATTENTION
    assert job.recording.problem_code == "cancelled"
    assert job_queue.claim_next_job(worker="jobs@one") is None


def test_a_running_job_is_asked_to_stop(alice: User) -> None:
    job = make_job(alice)
    claim = claim_of()
    assert jobs.renew_lease(claim=claim) is False
    assert jobs.cancel_job(job=job, cancelled_by=alice).state == JobState.RUNNING
    assert jobs.renew_lease(claim=claim) is True
    jobs.end_cancelled_job(claim=claim)
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED
    assert jobs.cancel_job(job=job, cancelled_by=alice).state == JobState.CANCELLED


def test_a_cancelled_job_whose_worker_died_ends(alice: User) -> None:
    job = make_job(alice)
    claim_of()
    jobs.cancel_job(job=job, cancelled_by=alice)
    expire_lease(job)
    job_queue.reap_jobs()
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED


def test_a_recording_that_has_a_transcript_stays_ready_when_a_rerun_is_cancelled(
    alice: User,
) -> None:
    job = make_job(alice)
    finish(job, "first")
    rerun = jobs.retry_job(recording=job.recording, requested_by=alice)
    jobs.store_progress(claim=claim_of(), progress=progress("second"))
    assert texts(job.recording) == ["first"]
    jobs.cancel_job(job=rerun, cancelled_by=alice)
    expire_lease(rerun)
    job_queue.reap_jobs()
    job.recording.refresh_from_db()
    assert job.recording.state == RecordingState.READY
    assert texts(job.recording) == ["first"]


def test_a_rerun_replaces_a_pass_but_never_a_persons_edits(alice: User) -> None:
    job = make_job(alice)
    finish(job, "first")
    second = jobs.retry_job(recording=job.recording, requested_by=alice)
    finish(second, "second")
    assert texts(job.recording) == ["second"]
    second.revisions.filter(kind=REFINED).update(kind=RevisionKind.EDITED)
    third = jobs.retry_job(recording=job.recording, requested_by=alice)
    finish(third, "third")
    assert texts(job.recording) == ["second"]
    assert job.recording.notice == jobs.EDITS_STAND_NOTICE
    assert not third.revisions.filter(is_complete=False).exists()


def test_edits_stand_while_both_passes_run(alice: User) -> None:
    job = make_job(alice)
    finish(job, "first")
    job.revisions.filter(kind=REFINED).update(kind=RevisionKind.EDITED)
    jobs.retry_job(recording=job.recording, requested_by=alice)
    claim = claim_of()
    for kind in (DRAFT, REFINED):
        store(claim, kind, "second")
        assert texts(job.recording) == ["first"]


def test_transcribing_again_takes_other_options_or_the_last_ones(alice: User) -> None:
    job = make_job(alice)
    finish(job, "first")
    options = JobOptions(
        mixes_languages=True, finds_speakers=True, speaker_count=3, is_draft_only=True
    )
    second = jobs.retry_job(recording=job.recording, requested_by=alice, options=options)
    assert (second.language, second.is_draft_only) == ("", True)
    store(claim_of(), DRAFT, "second")
    change_job(second, state=JobState.DONE)
    third = jobs.retry_job(recording=Recording.objects.get(), requested_by=alice)
    assert third.recording.mixes_languages
    assert (third.recording.finds_speakers, third.recording.speaker_count) == (True, 3)
    assert not third.is_draft_only


def test_an_unfinished_draft_goes_when_a_later_one_is_complete(alice: User) -> None:
    job = make_job(alice)
    claim = claim_of()
    store(claim, DRAFT, "half")
    store(claim, REFINED, "half")
    jobs.fail_attempt(claim=claim, code="broken", problem="Broken.", is_retryable=False)
    assert texts(job.recording) == ["half"]
    finish(jobs.retry_job(recording=job.recording, requested_by=alice), "whole")
    assert texts(job.recording) == ["whole"]
    assert TranscriptRevision.objects.count() == 2


def test_no_speech_is_a_ready_recording_with_a_notice(alice: User) -> None:
    job = make_job(alice)
    jobs.finish_job(claim=claim_of(), model_name="scripted")
    job.recording.refresh_from_db()
    assert job.recording.state == RecordingState.READY
    assert job.recording.notice == jobs.NO_SPEECH_NOTICE
    assert texts(job.recording) == []
    finish(jobs.retry_job(recording=job.recording, requested_by=alice), "speech")
    job.recording.refresh_from_db()
    assert job.recording.notice == ""


def test_a_notice_of_the_check_stays(alice: User) -> None:
    job = make_job(alice, notice="Parts are damaged.")
    finish(job, "rest")
    job.recording.refresh_from_db()
    assert job.recording.notice == "Parts are damaged."


def test_deleting_during_a_run_leaves_nothing(alice: User) -> None:
    job = make_job(alice)
    claim = claim_of()
    jobs.store_progress(claim=claim, progress=progress("one"))
    folder = job.recording.folder
    trash.delete_for_ever(recording=job.recording, deleted_by=alice)
    with pytest.raises(LeaseLostError):
        jobs.renew_lease(claim=claim)
    with pytest.raises(LeaseLostError):
        jobs.store_progress(claim=claim, progress=progress("two"))
    with pytest.raises(LeaseLostError):
        jobs.finish_job(claim=claim, model_name="scripted")
    assert not folder.exists()
    for model in (Recording, Job, Attempt, TranscriptRevision, TranscriptSegment):
        assert not model.objects.exists()
