"""Transcript revisions: how a pass, or a live session, becomes the text of a recording.

A revision that a person edited is current until that person decides otherwise: no pass replaces it.
A job writes two: while the refined one grows, it is read together with what the draft has beyond
it.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.db.models import Max, QuerySet

from asr_engine.results import Segment, Word
from transcription.broadcast import recording_changed_on_commit
from transcription.models import (
    Job,
    LiveSession,
    Recording,
    RevisionKind,
    TranscriptRevision,
    TranscriptSegment,
)


def current_revision(recording: Recording) -> TranscriptRevision | None:
    """What pages, exports and the API show."""
    return recording.current_revision


def segments_of(revision: TranscriptRevision) -> list[Segment]:
    """What is read as `revision`, in the engine's words: its segments, then its tail."""
    rows = (*revision.segments.order_by("index"), *tail_of(revision))
    return [_segment_of(row, revision) for row in rows]


def own_segments_of(revision: TranscriptRevision, *, start: int = 0) -> list[Segment]:
    """Its segments from the one with index `start`, without the tail: what its pass has written."""
    rows = revision.segments.filter(index__gte=start).order_by("index")
    return [_segment_of(row, revision) for row in rows]


def _segment_of(row: TranscriptSegment, revision: TranscriptRevision) -> Segment:
    return Segment(
        start_ms=row.start_ms,
        end_ms=row.end_ms,
        text=row.text,
        words=tuple(Word.from_json(word) for word in row.words),
        language=row.language or revision.language or None,
        mean_log_probability=row.mean_log_probability,
        no_speech_probability=row.no_speech_probability,
        speaker=row.speaker or None,
        mark=row.mark or None,
    )


def tail_of(revision: TranscriptRevision | None) -> QuerySet[TranscriptSegment]:
    """What the draft has beyond a refined `revision` that is not complete; else nothing."""
    if revision is None or revision.is_complete or revision.kind != RevisionKind.REFINED:
        return TranscriptSegment.objects.none()
    return TranscriptSegment.objects.filter(
        revision__job=revision.job_id,
        revision__kind=RevisionKind.DRAFT,
        index__gte=revision.replaced_segments,
    ).order_by("index")


def revision_of_job(*, job: Job, kind: RevisionKind, model_name: str) -> TranscriptRevision:
    """The revision that a pass of this job writes, made on its first group, in a transaction.

    It is shown at once unless a complete or edited text is there to be read.
    """
    revision = TranscriptRevision.objects.filter(job=job, kind=kind).first()
    if revision is not None:
        return revision
    revision = _new_revision(
        job.recording, kind, job=job, model_name=model_name, language=job.language
    )
    shown = _shown_revision(job.recording)
    if shown is None or not (shown.is_complete or shown.kind == RevisionKind.EDITED):
        _show(revision)
    return revision


def append_segments(*, revision: TranscriptRevision, segments: Sequence[Segment]) -> None:
    """Add `segments` after those that `revision` has. Call it in a transaction."""
    TranscriptSegment.objects.bulk_create(
        TranscriptSegment(
            revision=revision,
            index=index,
            start_ms=segment.start_ms,
            end_ms=segment.end_ms,
            text=segment.text,
            words=[word.as_json() for word in segment.words],
            speaker=segment.speaker or "",
            language="" if segment.language in {None, revision.language} else segment.language,
            mark=segment.mark or "",
            mean_log_probability=segment.mean_log_probability,
            no_speech_probability=segment.no_speech_probability,
        )
        for index, segment in enumerate(segments, _next_index(revision.segments.all()))
    )


def replace_draft(*, revision: TranscriptRevision) -> None:
    """A refined `revision` now stands for all that its job's draft has; in a transaction."""
    drafted = TranscriptSegment.objects.filter(
        revision__job=revision.job_id, revision__kind=RevisionKind.DRAFT
    )
    TranscriptRevision.objects.filter(id=revision.id).update(replaced_segments=_next_index(drafted))


def replace_segments(*, revision: TranscriptRevision, segments: Sequence[Segment]) -> None:
    """Put `segments` in the place of those that `revision` has. Call it in a transaction.

    It takes a new number: a page that has read it knows that it must read it again.
    """
    revision.segments.all().delete()
    append_segments(revision=revision, segments=segments)
    revision.number = _last_number(revision.recording) + 1
    revision.save(update_fields=("number",))


def complete_revision(*, revision: TranscriptRevision) -> bool:
    """Mark it complete and show it, unless a person's edits, or text where it has none, stand.

    Unfinished revisions of earlier jobs go. Call it in a transaction. True if it is shown now.
    """
    TranscriptRevision.objects.filter(id=revision.id).update(is_complete=True)
    shown = _shown_revision(revision.recording)
    stands = (
        shown is not None
        and shown.id != revision.id
        and (
            shown.kind == RevisionKind.EDITED
            or (shown.is_complete and shown.segments.exists() and not revision.segments.exists())
        )
    )
    if not stands:
        _show(revision)
    revision.recording.revisions.filter(is_complete=False).exclude(
        kind=RevisionKind.EDITED
    ).delete()
    return not stands


def store_live_revision(*, recording: Recording, session: LiveSession) -> TranscriptRevision:
    """The finals of `session` as a revision of its recording; the same one when called again."""
    with transaction.atomic():
        Recording.objects.select_for_update().get(id=recording.id)
        stored = recording.revisions.filter(kind=RevisionKind.LIVE).first()
        if stored is not None:
            return stored
        revision = _new_revision(
            recording, RevisionKind.LIVE, language=session.language, is_complete=True
        )
        TranscriptSegment.objects.bulk_create(
            TranscriptSegment(
                revision=revision,
                index=index,
                start_ms=final.start_ms,
                end_ms=max(final.end_ms, final.start_ms + 1),
                text=final.shown_text,
                words=final.shown_words,
            )
            for index, final in enumerate(session.utterances.order_by("utterance"))
        )
        if _shown_revision(recording) is None:
            _show(revision)
        recording_changed_on_commit(recording.id)
    return revision


def _new_revision(
    recording: Recording,
    kind: RevisionKind,
    *,
    job: Job | None = None,
    model_name: str = "",
    language: str = "",
    is_complete: bool = False,
) -> TranscriptRevision:
    return TranscriptRevision.objects.create(
        recording=recording,
        number=_last_number(recording) + 1,
        kind=kind,
        job=job,
        model_name=model_name,
        language=language,
        is_complete=is_complete,
    )


def _last_number(recording: Recording) -> int:
    return recording.revisions.aggregate(last=Max("number"))["last"] or 0


def _next_index(segments: QuerySet[TranscriptSegment]) -> int:
    last = segments.aggregate(last=Max("index"))["last"]
    return 0 if last is None else last + 1


def _shown_revision(recording: Recording) -> TranscriptRevision | None:
    """Fresh from the database: `recording` may have been read long ago."""
    return TranscriptRevision.objects.filter(
        id__in=Recording.objects.filter(id=recording.id).values("current_revision")
    ).first()


def _show(revision: TranscriptRevision) -> None:
    Recording.objects.filter(id=revision.recording_id).update(current_revision=revision)
