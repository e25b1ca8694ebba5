"""Uploads: offsets are promises, one writer at a time, nothing is left behind."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks
from pytest_django.fixtures import Settings

from asr_engine.errors import EmptyAudioError
from tests.fakes.recordings import make_upload
from transcription.errors import (
    ConflictError,
    NoSpaceError,
    NotFoundError,
    StaleOffsetError,
    TooLargeError,
    UploadBusyError,
)
from transcription.models import Job, Recording, RecordingState, Upload, UploadState
from transcription.services import storage, uploads
from transcription.services.job_options import JobOptions
from transcription.services.uploads import CheckedAudio
from webapp.accounts.models import User

CHECKED = CheckedAudio(
    duration_ms=61_000,
    container="wav",
    codec="pcm_s16le",
    player_name="player.mp3",
    media_type="audio/mpeg",
    is_damaged=False,
)


def create(owner: User, length_bytes: int = 6) -> Upload:
    return uploads.create_upload(owner=owner, display_name="a.wav", length_bytes=length_bytes)


def append(upload: Upload, offset_bytes: int, *chunks: bytes) -> Upload:
    return uploads.append_upload(upload=upload, offset_bytes=offset_bytes, chunks=chunks)


def age(upload: Upload, by: timedelta) -> None:
    Upload.objects.filter(id=upload.id).update(touched_at=timezone.now() - by)


def test_pieces_are_joined_and_the_last_one_asks_for_the_check(
    alice: User,
    sent: list[tuple[str, ...]],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    upload = create(alice)
    with django_capture_on_commit_callbacks(execute=True):
        assert append(upload, 0, b"ab", b"c").offset_bytes == 3
    assert sent == []
    with django_capture_on_commit_callbacks(execute=True):
        upload = append(upload, 3, b"def")
    assert upload.state == UploadState.CHECKING
    assert sent == [("transcription.check_upload", str(upload.id))]
    assert upload.part_path.read_bytes() == b"abcdef"


def test_another_offset_than_the_stored_one_is_refused(alice: User) -> None:
    upload = append(create(alice), 0, b"abc")
    for offset_bytes in (0, 2, 4):
        with pytest.raises(StaleOffsetError):
            append(upload, offset_bytes, b"x")
    assert upload.part_path.read_bytes() == b"abc"


def test_bytes_beyond_the_announced_length_are_refused_and_not_counted(alice: User) -> None:
    upload = create(alice)
    with pytest.raises(TooLargeError):
        append(upload, 0, b"abcd", b"efg")
    upload.refresh_from_db()
    assert upload.offset_bytes == 0
    assert append(upload, 0, b"abcdef").state == UploadState.CHECKING


def test_a_complete_upload_takes_no_more(alice: User) -> None:
    upload = make_upload(alice)
    with pytest.raises(ConflictError):
        append(upload, 3, b"")


def test_a_request_that_breaks_off_leaves_the_offset_where_it_was(alice: User) -> None:
    def broken() -> Iterator[bytes]:
        yield b"abc"
        raise ConnectionResetError

    upload = create(alice)
    with pytest.raises(ConnectionResetError):
        uploads.append_upload(upload=upload, offset_bytes=0, chunks=broken())
    upload.refresh_from_db()
    assert upload.offset_bytes == 0
    append(upload, 0, b"uvwxyz")
    assert upload.part_path.read_bytes() == b"uvwxyz"


def test_only_one_request_writes_at_a_time(alice: User) -> None:
    upload = create(alice)
    with storage.exclusive(upload.part_path), pytest.raises(UploadBusyError):
        append(upload, 0, b"abc")
    append(upload, 0, b"abc")


def test_the_lock_of_a_killed_process_is_free(alice: User) -> None:
    upload = create(alice)
    code = "import fcntl,os,sys;f=open(sys.argv[1],'r+b');fcntl.flock(f,2);os.kill(os.getpid(),9)"
    killed = subprocess.run([sys.executable, "-c", code, str(upload.part_path)], check=False)
    assert killed.returncode == -9
    append(upload, 0, b"abc")


def test_a_full_disk_keeps_what_was_promised(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    upload = append(create(alice), 0, b"abc")

    def full(descriptor: int, data: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(NoSpaceError):
            append(upload, 3, b"def")
    upload.refresh_from_db()
    assert upload.offset_bytes == 3
    append(upload, 3, b"def")


def test_room_is_counted_with_what_other_uploads_will_bring(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = storage.RESERVE_BYTES + 1000
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    create(alice, 600)
    with pytest.raises(NoSpaceError):
        create(alice, 600)
    create(alice, 400)


def test_limit_and_emptiness_are_refused_at_once(alice: User, settings: Settings) -> None:
    settings.SITE = settings.SITE.model_copy(update={"max_upload_bytes": 1024**3})
    with pytest.raises(TooLargeError, match=r"1 GB"):
        create(alice, 1024**3 + 1)
    with pytest.raises(EmptyAudioError):
        create(alice, 0)
    assert not Upload.objects.exists()


def test_cancelling_leaves_neither_row_nor_bytes(alice: User, media_dir: Path) -> None:
    for upload in (create(alice), make_upload(alice)):
        uploads.cancel_upload(upload=upload)
        with pytest.raises(NotFoundError):
            append(upload, 0, b"abc")
    assert not Upload.objects.exists()
    assert not list((media_dir / "uploads").iterdir())


def test_an_accepted_upload_becomes_a_queued_recording(alice: User) -> None:
    upload = make_upload(alice, content=b"abc", name="Weekly talk.wav")
    folder = upload.folder
    upload.part_path.rename(folder / "source.bin")
    recording = uploads.accept_upload(upload=upload, audio=CHECKED)
    upload.refresh_from_db()
    assert (upload.state, upload.recording) == (UploadState.ACCEPTED, recording)
    assert (recording.title, recording.size_bytes) == ("Weekly talk", 3)
    assert recording.source_path.read_bytes() == b"abc"
    assert not folder.exists()
    assert Job.objects.get(recording=recording).requested_by == alice
    assert recording.state == RecordingState.QUEUED
    with pytest.raises(ConflictError):
        uploads.cancel_upload(upload=upload)


@pytest.mark.parametrize(
    ("audio", "notice"),
    [
        (CHECKED, ""),
        (replace(CHECKED, is_damaged=True), uploads.DAMAGED_NOTICE),
        (
            replace(CHECKED, duration_ms=44_983, is_damaged=True, missing_of_ms=90_040),
            uploads.SHORT_NOTICE.format(stated="1:30", held="0:44"),
        ),
        (
            replace(CHECKED, is_damaged=True, missing_of_ms=18_000_000),
            uploads.SHORT_NOTICE.format(stated="5:00:00", held="1:01"),
        ),
    ],
    ids=["whole", "damaged", "cut", "hours"],
)
def test_the_owner_is_told_of_lost_sound(alice: User, audio: CheckedAudio, notice: str) -> None:
    upload = make_upload(alice, content=b"abc")
    upload.part_path.rename(upload.folder / "source.bin")
    assert uploads.accept_upload(upload=upload, audio=audio).notice == notice


def test_what_was_asked_at_the_upload_is_asked_of_the_job(alice: User) -> None:
    options = JobOptions(
        mixes_languages=True, finds_speakers=True, speaker_count=2, is_draft_only=True
    )
    upload = uploads.create_upload(
        owner=alice, display_name="a.wav", length_bytes=3, options=options
    )
    upload = append(upload, 0, b"abc")
    upload.part_path.rename(upload.folder / "source.bin")
    recording = uploads.accept_upload(upload=upload, audio=CHECKED)
    assert recording.mixes_languages
    assert (recording.finds_speakers, recording.speaker_count) == (True, 2)
    job = recording.jobs.get()
    assert (job.language, job.is_draft_only) == ("", True)


def test_an_upload_cancelled_during_its_check_leaves_nothing(alice: User, media_dir: Path) -> None:
    upload = make_upload(alice)
    Upload.objects.filter(id=upload.id).delete()  # the row goes first, as in cancel_upload
    with pytest.raises(NotFoundError):
        uploads.accept_upload(upload=upload, audio=CHECKED)
    assert not Recording.objects.exists()
    assert not Job.objects.exists()
    assert not list((media_dir / "recordings").iterdir())


def test_a_refusal_says_why_and_frees_the_space(alice: User) -> None:
    upload = make_upload(alice)
    uploads.refuse_upload(upload=upload, code="no_audio_track", problem="No audio track.")
    upload.refresh_from_db()
    assert (upload.state, upload.problem) == (UploadState.REFUSED, "No audio track.")
    assert not upload.folder.exists()
    uploads.refuse_upload(upload=upload, code="other", problem="Other.")
    upload.refresh_from_db()
    assert upload.problem_code == "no_audio_track"


def test_one_check_runs_at_a_time_and_a_finished_one_not_again(alice: User) -> None:
    upload = make_upload(alice)
    with uploads.checking(upload.id) as first:
        assert first == upload
        with pytest.raises(UploadBusyError), uploads.checking(str(upload.id)):
            pass
    uploads.refuse_upload(upload=upload, code="x", problem="X.")
    with uploads.checking(upload.id) as again:
        assert again is None
    with uploads.checking(uuid4()) as unknown:
        assert unknown is None


def test_a_check_that_kills_its_process_is_given_up(alice: User) -> None:
    upload = make_upload(alice)
    for _ in range(uploads.MAX_CHECKS):
        with uploads.checking(upload.id) as held:
            assert held is not None
    with uploads.checking(upload.id) as held:
        assert held is None
    upload.refresh_from_db()
    assert upload.state == UploadState.REFUSED
    assert "upload it again" in upload.problem


def test_sweep_removes_what_nobody_continues(alice: User) -> None:
    old, fresh = create(alice), create(alice)
    age(old, uploads.UPLOAD_EXPIRY + timedelta(minutes=1))
    age(fresh, uploads.UPLOAD_EXPIRY - timedelta(minutes=1))
    uploads.sweep_uploads()
    assert list(Upload.objects.all()) == [fresh]
    assert not old.folder.exists()
    assert fresh.part_path.exists()


def test_sweep_finds_a_check_whose_message_was_lost(
    alice: User, sent: list[tuple[str, ...]]
) -> None:
    silent, recent = make_upload(alice), make_upload(alice)
    age(silent, uploads.CHECK_SILENCE * 2)
    uploads.sweep_uploads()
    assert sent == [("transcription.check_upload", str(silent.id))]
    assert recent.state == UploadState.CHECKING


def test_sweep_hands_over_an_upload_whose_last_request_was_killed(
    alice: User, sent: list[tuple[str, ...]]
) -> None:
    upload = create(alice, 3)
    append(upload, 0, b"ab")
    Upload.objects.filter(id=upload.id).update(offset_bytes=3)
    age(upload, uploads.UPLOAD_EXPIRY * 2)
    uploads.sweep_uploads()
    upload.refresh_from_db()
    assert upload.state == UploadState.CHECKING
    assert sent == [("transcription.check_upload", str(upload.id))]


def test_sweep_forgets_old_refusals(alice: User) -> None:
    upload = make_upload(alice)
    uploads.refuse_upload(upload=upload, code="x", problem="X.")
    age(upload, uploads.REFUSAL_SHOWN * 2)
    uploads.sweep_uploads()
    assert not Upload.objects.exists()


def test_the_table_names_every_state() -> None:
    assert set(uploads.UPLOAD_TRANSITIONS) == set(UploadState)
