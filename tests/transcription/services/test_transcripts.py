"""Revisions: what is shown, and what is never replaced."""

from __future__ import annotations

from tests.fakes.recordings import claim_of, make_job, make_recording, progress
from transcription.models import LiveSession, LiveUtterance, RecordingSource, RevisionKind
from transcription.services import jobs, transcripts
from webapp.accounts.models import User


def live_session(owner: User, *texts: str) -> LiveSession:
    session = LiveSession.objects.create(owner=owner, title="Standup", language="en")
    for index, text in enumerate(texts):
        LiveUtterance.objects.create(
            session=session,
            utterance=index,
            seq=index + 1,
            start_ms=index * 1000,
            end_ms=index * 1000 + 900,
            text=text,
            words=[{"text": text, "start_ms": index * 1000, "end_ms": index * 1000 + 900}],
        )
    return session


def test_the_captions_of_a_session_become_its_recordings_first_revision(alice: User) -> None:
    recording = make_recording(alice, source=RecordingSource.LIVE)
    session = live_session(alice, "good", "morning")
    revision = transcripts.store_live_revision(recording=recording, session=session)
    recording.refresh_from_db()
    assert transcripts.current_revision(recording) == revision
    assert (revision.kind, revision.is_complete, revision.number) == (RevisionKind.LIVE, True, 1)
    segments = list(revision.segments.values_list("text", "start_ms", "end_ms"))
    assert segments == [("good", 0, 900), ("morning", 1000, 1900)]
    assert transcripts.store_live_revision(recording=recording, session=session) == revision


def test_captions_stay_shown_until_the_pass_is_complete(alice: User) -> None:
    job = make_job(alice, source=RecordingSource.LIVE)
    captions = transcripts.store_live_revision(
        recording=job.recording, session=live_session(alice, "good morning")
    )
    claim = claim_of()
    for kind in (RevisionKind.DRAFT, RevisionKind.REFINED):
        jobs.store_progress(claim=claim, progress=progress("Good morning.", kind=kind))
        job.recording.refresh_from_db()
        assert transcripts.current_revision(job.recording) == captions
    jobs.finish_job(claim=claim, model_name="scripted")
    job.recording.refresh_from_db()
    shown = transcripts.current_revision(job.recording)
    assert shown is not None
    assert (shown.kind, shown.number) == (RevisionKind.REFINED, 3)
    assert job.recording.revisions.count() == 3


def test_an_empty_pass_does_not_hide_captions(alice: User) -> None:
    job = make_job(alice, source=RecordingSource.LIVE)
    captions = transcripts.store_live_revision(
        recording=job.recording, session=live_session(alice, "hello")
    )
    jobs.finish_job(claim=claim_of(), model_name="scripted")
    job.recording.refresh_from_db()
    assert transcripts.current_revision(job.recording) == captions
