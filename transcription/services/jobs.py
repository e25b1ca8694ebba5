"""Jobs: requested work, its checkpoints and its end.

A worker holds a job by a `Claim` (see `job_queue`). Every write of a worker says `WHERE fence =
mine AND state = running`; a worker whose lease was taken changes nothing and gets LeaseLostError.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from asr_engine.results import LanguageGuess, Segment
from transcription.broadcast import recording_changed_on_commit
from transcription.errors import ConflictError, LeaseLostError, NotFoundError
from transcription.models import (
    Job,
    JobState,
    Recording,
    RecordingState,
    RevisionKind,
    TranscriptRevision,
    WebhookEvent,
)
from transcription.queue import Task, wake_on_commit
from transcription.services import transcripts, webhooks
from transcription.services.job_options import JobOptions
from transcription.services.job_queue import LEASE, Claim
from transcription.services.job_states import (
    ACTIVE,
    close_attempt,
    move,
    record_failure,
    reflect,
    reflect_cancelled,
)
from transcription.services.names import clean_language
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act, User

NO_AUDIO: Final = (
    "The audio of this recording was removed by the retention rules, so it cannot be transcribed "
    "again. Its transcript stays."
)
NO_SPEECH_NOTICE: Final = "No speech was found in this recording."
TRACK_STANDS_NOTICE: Final = (
    "No speech was found in the audio track that you chose, so transcript and player are as before."
)
EDITS_STAND_NOTICE: Final = (
    "You edited this transcript, so your version is still shown. The new one is kept beside it."
)
NO_SPEAKERS_NOTICE: Final = (
    "The speakers of this recording could not be told apart; its text is complete."
)
JOB_NOTICES: Final = (
    NO_SPEECH_NOTICE,
    TRACK_STANDS_NOTICE,
    EDITS_STAND_NOTICE,
    NO_SPEAKERS_NOTICE,
)
SPEAKERS: Final = "speakers"
"""Stage of a job that looks for speakers; empty while the passes run."""
FIELD_OF_OPTION: Final = {
    "language": "requested_language",
    "mixes_languages": "mixes_languages",
    "chinese_script": "chinese_script",
    "finds_speakers": "finds_speakers",
    "speaker_count": "speaker_count",
}
"""Where a recording keeps what was asked of its transcription (the rest is its job's)."""
OPTIONS_OF: Final = {
    "language": ("language", "mixes_languages"),
    "chinese_script": ("chinese_script",),
    "speakers": ("finds_speakers", "speaker_count"),
}
"""The options that a word of `read_options` says."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What one pass heard in a group, and from where a successor would go on.

    `voices` is `speakers.voices_of` what is heard.
    """

    kind: RevisionKind
    segments: Sequence[Segment]
    checkpoint: dict[str, object]
    audio_done_ms: int
    audio_total_ms: int
    language: LanguageGuess | None
    model_name: str
    work_seconds: float
    voices: str = ""


def submit_job(
    *,
    recording: Recording,
    requested_by: User | None,
    language: str = "",
    is_draft_only: bool = False,
    track: int | None = None,
) -> Job:
    """Queue the transcription of `recording`, or return the job that is under way already.

    `track` is the audio track that somebody chose, None that of the transcript.
    """
    language = clean_language(language)
    try:
        with transaction.atomic():
            job = Job.objects.create(
                recording=recording,
                requested_by=requested_by,
                language=language,
                is_draft_only=is_draft_only,
                track=track,
                audio_total_ms=recording.duration_ms,
            )
            reflect(recording, RecordingState.QUEUED)
    except IntegrityError:
        active = Job.objects.filter(recording=recording, state__in=ACTIVE).first()
        if active is None:
            raise
        return active
    wake_on_commit(Task.RUN_JOBS)
    return job


def options_again(*, recording: Recording, asked: JobOptions, given: Iterable[str]) -> JobOptions:
    """`asked` where its word (a parameter of `read_options`) is among those `given`; the rest stays
    as it was for `recording`. Whether there is a second pass is asked each time.
    """
    said = {name for word in given for name in OPTIONS_OF.get(word, ())}
    before = {
        option: getattr(recording, field)
        for option, field in FIELD_OF_OPTION.items()
        if option not in said
    }
    return replace(asked, **before)


def retry_job(
    *,
    recording: Recording,
    requested_by: User | None,
    options: JobOptions | None = None,
    track: int | None = None,
) -> Job:
    """Transcribe again from the start, with `options` or in both passes as asked for before.

    `track` is another audio track. What has failed is tried again with the track that was chosen
    for it. Raises ConflictError while a job is under way, or where there is no audio any more;
    NotFoundError if the recording is gone.
    """
    with transaction.atomic():
        # Locked: a purge takes the audio of what is not in flight.
        current = Recording.objects.select_for_update().filter(id=recording.id).first()
        if current is None:
            raise NotFoundError
        if current.audio_removed_at is not None:
            raise ConflictError(NO_AUDIO)
        if Job.objects.filter(recording=recording, state__in=ACTIVE).exists():
            raise ConflictError("This recording is being transcribed already.")
        if options is not None:
            asked = {field: getattr(options, name) for name, field in FIELD_OF_OPTION.items()}
            for name, value in asked.items():
                setattr(recording, name, value)
            recording.save(update_fields=asked)
        if options is None and track is None and current.state == RecordingState.ATTENTION:
            track = recording.jobs.values_list("track", flat=True).first()
        record_act(act=Act.JOB_ASKED, actor=requested_by, on=recording)
        return submit_job(
            recording=recording,
            requested_by=requested_by,
            language=recording.requested_language,
            is_draft_only=options is not None and options.is_draft_only,
            track=track,
        )


def passes_of(job: Job) -> list[RevisionKind]:
    """The revisions that `job` writes, in their order; the last one is what people want."""
    return [RevisionKind.DRAFT] if job.is_draft_only else [RevisionKind.DRAFT, RevisionKind.REFINED]


def cancel_job(*, job: Job, cancelled_by: User) -> Job:
    """Cancel at once where it waits; ask its worker to stop where it runs. Harmless afterwards."""
    with transaction.atomic():
        record_act(act=Act.JOB_ENDED, actor=cancelled_by, on=job.recording)
        if move(Job.objects.filter(id=job.id, state=JobState.QUEUED), JobState.CANCELLED):
            reflect_cancelled(job.recording)
        else:
            Job.objects.filter(id=job.id, state=JobState.RUNNING).update(is_cancel_requested=True)
            recording_changed_on_commit(job.recording_id)
    job.refresh_from_db()
    return job


# What the holder of a claim does ------------------------------------------------------------------


def renew_lease(*, claim: Claim) -> bool:
    """Keep the job; True if the worker should stop, since somebody asked to cancel.

    Raises LeaseLostError where the job is gone or another's.
    """
    if not _held(claim).update(lease_expires_at=timezone.now() + LEASE):
        raise LeaseLostError
    return _held(claim).filter(is_cancel_requested=True).exists()


def store_progress(*, claim: Claim, progress: Progress) -> TranscriptRevision:
    """Store a group's segments and its checkpoint, both or none. Raises LeaseLostError."""
    job, recording = claim.job, claim.job.recording
    with transaction.atomic():
        if not _held(claim).update(
            checkpoint=progress.checkpoint,
            audio_done_ms=progress.audio_done_ms,
            audio_total_ms=progress.audio_total_ms,
            work_seconds=F("work_seconds") + progress.work_seconds,
            failures=0,
            lease_expires_at=timezone.now() + LEASE,
        ):
            raise LeaseLostError
        revision = transcripts.revision_of_job(
            job=job, kind=progress.kind, model_name=progress.model_name
        )
        revision.voices = progress.voices
        if progress.language is not None and not (recording.mixes_languages and revision.language):
            revision.language = progress.language.language
            revision.language_confidence = progress.language.probability
        revision.save(update_fields=("voices", "language", "language_confidence"))
        _say_of_shown(job, revision)
        transcripts.append_segments(revision=revision, segments=progress.segments)
        if progress.kind == RevisionKind.REFINED:
            transcripts.replace_draft(revision=revision)
        recording_changed_on_commit(recording.id)
    return revision


def requeue_job(*, claim: Claim) -> None:
    """Give the job back with its checkpoint: the slice is over, or this worker ends."""
    with transaction.atomic():
        _leave(claim, JobState.QUEUED, "requeued")
        wake_on_commit(Task.RUN_JOBS)


def begin_speakers(*, claim: Claim, model_name: str) -> TranscriptRevision:
    """All audio has been heard and the revisions are complete; who spoke is still to be found.

    Returns the revision whose segments are to have speakers.
    """
    with transaction.atomic():
        if not _held(claim).update(stage=SPEAKERS, checkpoint={}, audio_done_ms=0, failures=0):
            raise LeaseLostError
        recording_changed_on_commit(claim.job.recording_id)
        return _complete(claim.job, model_name)


def store_hearing(
    *, claim: Claim, checkpoint: dict[str, object], audio_done_ms: int, work_seconds: float
) -> None:
    """Store how far the search for speakers has come. Raises LeaseLostError."""
    with transaction.atomic():
        if not _held(claim).update(
            checkpoint=checkpoint,
            audio_done_ms=audio_done_ms,
            work_seconds=F("work_seconds") + work_seconds,
            failures=0,
            lease_expires_at=timezone.now() + LEASE,
        ):
            raise LeaseLostError
        recording_changed_on_commit(claim.job.recording_id)


def finish_job(
    *, claim: Claim, model_name: str, spoken: Sequence[Segment] | None = None, notice: str = ""
) -> None:
    """All is done: the revisions are complete and the recording ready.

    `spoken` are the segments divided among speakers, in the place of those that the last pass left;
    `notice` is for the owner, where there is nothing of more weight to say.
    """
    with transaction.atomic():
        _leave(claim, JobState.DONE, "done")
        revision = _complete(claim.job, model_name, notice)
        if spoken is not None:
            transcripts.replace_segments(revision=revision, segments=spoken)
        reflect(claim.job.recording, RecordingState.READY)
        webhooks.announce_job(claim.job, WebhookEvent.RECORDING_READY)


def _complete(job: Job, model_name: str, notice: str = "") -> TranscriptRevision:
    """Complete what the passes wrote, and say what its owner should know."""
    revisions = [
        transcripts.revision_of_job(job=job, kind=kind, model_name=model_name)
        for kind in passes_of(job)
    ]
    TranscriptRevision.objects.filter(id=revisions[0].id).update(is_complete=True)
    revision = revisions[-1]
    is_shown = transcripts.complete_revision(revision=revision)
    _say_of_shown(job, revision)
    if not revision.segments.exists():
        is_other = not is_shown and job.track not in {None, job.recording.track}
        notice = TRACK_STANDS_NOTICE if is_other else NO_SPEECH_NOTICE
    elif not is_shown:
        notice = EDITS_STAND_NOTICE
    recording = Recording.objects.filter(id=job.recording_id)
    recording.filter(notice__in=JOB_NOTICES).update(notice="")
    if notice:
        recording.update(notice=notice)
    return revision


def _say_of_shown(job: Job, revision: TranscriptRevision) -> None:
    """Where `revision` is shown, language and audio track of the recording are what it is of.

    While another is shown they are that one's: a job may be cancelled or fail.
    """
    shown = Recording.objects.filter(id=job.recording_id, current_revision=revision)
    if revision.language_confidence is not None:
        shown.update(language=revision.language, language_confidence=revision.language_confidence)
    if job.track is not None and shown.exclude(track=job.track).update(track=job.track):
        wake_on_commit(Task.MAKE_PLAYER, str(job.recording_id))


def end_cancelled_job(*, claim: Claim) -> None:
    """The worker has stopped because somebody asked for it."""
    with transaction.atomic():
        _leave(claim, JobState.CANCELLED, "cancelled")
        reflect_cancelled(claim.job.recording)


def fail_attempt(*, claim: Claim, code: str, problem: str, is_retryable: bool) -> None:
    """This attempt failed: the job waits for another, or fails with a sentence for its owner."""
    with transaction.atomic():
        job = _held(claim).select_for_update().first()
        if job is None:
            raise LeaseLostError
        record_failure(job, code=code, problem=problem, outcome=code, is_retryable=is_retryable)


def _held(claim: Claim) -> QuerySet[Job]:
    return Job.objects.filter(id=claim.job.id, fence=claim.fence, state=JobState.RUNNING)


def _leave(claim: Claim, to: JobState, outcome: str) -> None:
    if not move(_held(claim), to, lease_expires_at=None):
        raise LeaseLostError
    close_attempt(claim.job, claim.fence, outcome)
