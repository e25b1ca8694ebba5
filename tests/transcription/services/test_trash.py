"""The trash: in, out, and for ever."""

from __future__ import annotations

from datetime import timedelta

import pytest
import redis
from django.conf import settings as django_settings
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from asr_engine.protocol import audio_key, session_key
from tests.fakes.live import make_session
from tests.fakes.recordings import claim_of, make_job, make_recording, make_upload
from transcription import selectors
from transcription.errors import ConflictError, LeaseLostError, NotFoundError
from transcription.models import (
    Job,
    JobState,
    LiveSession,
    Recording,
    Remains,
    RetentionPolicy,
    Upload,
    UploadState,
)
from transcription.services import jobs, remains, storage, trash
from webapp.accounts.models import Act, AuditEntry, User

DAY = timedelta(days=1)


def acts() -> list[str]:
    told = AuditEntry.objects.order_by("id").values_list("act", flat=True)
    return [act for act in told if act not in {Act.JOB_ASKED, Act.JOB_ENDED, Act.CREATED}]


def test_in_the_trash_it_is_seen_by_its_owner_alone(alice: User, bob: User) -> None:
    recording = make_recording(alice, is_organisation_wide=True)
    trash.trash_recording(recording=recording, trashed_by=alice)
    for person in (alice, bob):
        with pytest.raises(NotFoundError):
            selectors.access_recording_by_id(person, recording.id)
    assert selectors.access_trashed_recording_by_id(alice, recording.id) == recording
    with pytest.raises(NotFoundError):
        selectors.access_trashed_recording_by_id(bob, recording.id)
    assert recording.source_path.exists()
    assert acts() == [Act.TRASHED]


def test_a_transcription_under_way_is_cancelled(alice: User) -> None:
    job = make_job(alice)
    trash.trash_recording(recording=job.recording, trashed_by=alice)
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED


def test_open_pages_and_readers_by_link_check_their_rights_again(
    alice: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    recording = make_recording(alice)
    with django_capture_on_commit_callbacks() as callbacks:
        trash.trash_recording(recording=recording, trashed_by=alice)
    assert len(callbacks) >= 2
    with django_capture_on_commit_callbacks() as callbacks:
        trash.trash_recording(recording=recording, trashed_by=alice)
    assert callbacks == []
    assert acts() == [Act.TRASHED]


def test_restored_it_is_as_before(alice: User, bob: User) -> None:
    recording = make_recording(alice, is_organisation_wide=True)
    trash.trash_recording(recording=recording, trashed_by=alice)
    restored = trash.restore_recording(recording=recording, restored_by=alice)
    assert selectors.access_recording_by_id(bob, recording.id) == recording
    assert restored.expires_at is None
    trash.restore_recording(recording=recording, restored_by=alice)
    assert acts() == [Act.TRASHED, Act.RESTORED]


def test_what_a_policy_put_there_is_not_put_there_again_the_next_night(alice: User) -> None:
    now = timezone.now()
    RetentionPolicy.objects.create(transcript_days=10, takes_effect_at=now - DAY)
    recording = make_recording(alice, created_at=now - 20 * DAY, trashed_at=now - DAY)
    restored = trash.restore_recording(recording=recording, restored_by=alice)
    assert restored.expires_at is not None
    assert restored.expires_at >= now + trash.RESTORED_FOR


def test_deleted_for_ever_nothing_is_left_of_it(alice: User) -> None:
    upload = make_upload(alice)
    job = make_job(alice)
    recording = job.recording
    Upload.objects.filter(id=upload.id).update(state=UploadState.ACCEPTED, recording=recording)
    session = make_session(alice)
    LiveSession.objects.filter(id=session.id).update(recording=recording)
    key = str(recording.id)
    site = django_settings.SITE
    with (
        redis.Redis.from_url(site.broker_url) as broker,
        redis.Redis.from_url(site.audio_url) as audio,
    ):
        broker.hset(session_key(key), "owner", "")
        audio.xadd(audio_key(key), {"d": b"\0"})
        trash.delete_for_ever(recording=recording, deleted_by=alice)
        assert not broker.exists(session_key(key))
        assert not audio.exists(audio_key(key))
    assert not recording.folder.exists()
    for model in (Recording, Upload, Job, LiveSession, Remains):
        assert not model.objects.exists()
    trash.delete_for_ever(recording=recording, deleted_by=alice)
    assert acts() == [Act.DELETED]


def test_a_job_that_runs_can_store_nothing_more(alice: User) -> None:
    recording = make_job(alice).recording
    claim = claim_of()
    trash.delete_for_ever(recording=recording, deleted_by=alice)
    with pytest.raises(LeaseLostError):
        jobs.finish_job(claim=claim, model_name="scripted")


def test_what_is_held_is_neither_trashed_nor_deleted(alice: User) -> None:
    recording = make_recording(alice, is_held=True)
    with pytest.raises(ConflictError, match="on hold"):
        trash.trash_recording(recording=recording, trashed_by=alice)
    with pytest.raises(ConflictError, match="on hold"):
        trash.delete_for_ever(recording=recording, deleted_by=alice)
    assert recording.source_path.exists()
    assert acts() == []


def test_what_was_deleted_meanwhile_is_not_found(alice: User) -> None:
    recording = make_recording(alice)
    trash.delete_for_ever(recording=Recording.objects.get(), deleted_by=alice)
    with pytest.raises(NotFoundError):
        trash.trash_recording(recording=recording, trashed_by=alice)
    with pytest.raises(NotFoundError):
        trash.restore_recording(recording=recording, restored_by=alice)


def test_bytes_that_cannot_be_removed_now_are_removed_later(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = make_recording(alice)
    with monkeypatch.context() as broken:
        broken.setattr(storage, "remove_folder", lambda folder: None)
        trash.delete_for_ever(recording=recording, deleted_by=alice)
    assert recording.folder.exists()
    assert Remains.objects.count() == 1
    assert remains.remove_remains() == 1
    assert not recording.folder.exists()


def test_keys_that_cannot_be_removed_now_are_removed_later(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def be_away(*_: object, **__: object) -> object:
        raise redis.ConnectionError

    recording = make_recording(alice)
    with monkeypatch.context() as away:
        away.setattr(redis.Redis, "from_url", be_away)
        trash.delete_for_ever(recording=recording, deleted_by=alice)
    assert Remains.objects.count() == 1
    assert remains.remove_remains() == 1
