"""The check of an upload: audio becomes a recording, anything else a sentence and free space."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from django.db import OperationalError

from asr_engine.audio import SAMPLE_RATE
from asr_engine.backends.scripted import encode_blocks
from asr_engine.errors import BrokenAudioError
from tests.fakes.audio import wav_bytes
from tests.fakes.containers import voice, write_tracks
from tests.fakes.recordings import claim_of, make_recording, make_upload, progress
from transcription.models import Job, Recording, Upload, UploadState
from transcription.runners import ingest
from transcription.services import jobs, storage, tracks, trash, uploads
from webapp.accounts.models import User

SPEECH = wav_bytes(encode_blocks([1, 2, 3, 4, 5, None, None, None, None, None]))


def test_audio_becomes_a_recording_with_a_player_and_a_waveform(alice: User) -> None:
    upload = make_upload(alice, content=SPEECH, name="Gespräch.wav")
    recording = ingest.check_upload(str(upload.id))
    assert recording is not None
    recording.refresh_from_db()
    assert (recording.id, recording.title, recording.owner) == (upload.id, "Gespräch", alice)
    assert recording.duration_ms == 1000
    assert (recording.container, recording.codec) == ("wav", "pcm_s16le")
    assert recording.source_path.read_bytes() == SPEECH
    assert recording.player_path.exists()
    assert (recording.folder / "peaks.json").exists()
    assert not upload.folder.exists()
    assert Job.objects.get().recording == recording


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("notes.wav", b"Dear all, here are the notes of the meeting.\n" * 50, "not_audio"),
        ("noise.mp3", bytes(range(7, 250)) * 40, "not_audio"),
        ("list.wav", b"ffconcat version 1.0\nfile /etc/passwd\n", "not_audio"),
        ("list.m4a", b"#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:1/a.ts\n", "not_audio"),
        ("header.wav", SPEECH[:44], "empty_audio"),
    ],
)
def test_what_is_no_audio_is_refused_with_a_sentence_and_frees_its_space(
    name: str, content: bytes, code: str, alice: User
) -> None:
    upload = make_upload(alice, content=content, name=name)
    assert ingest.check_upload(upload.id) is None
    upload.refresh_from_db()
    assert (upload.state, upload.problem_code) == (UploadState.REFUSED, code)
    assert upload.problem.endswith(".")
    assert not upload.folder.exists()
    assert not Recording.objects.exists()
    assert not Job.objects.exists()


def test_too_long_audio_is_refused(alice: User, settings: Any) -> None:
    settings.SITE = settings.SITE.model_copy(update={"max_recording_hours": 0.5 / 3600})
    upload = make_upload(alice, content=SPEECH)
    ingest.check_upload(upload.id)
    upload.refresh_from_db()
    assert upload.problem_code == "audio_too_long"


def test_a_second_delivery_changes_nothing(alice: User) -> None:
    upload = make_upload(alice, content=SPEECH)
    recording = ingest.check_upload(upload.id)
    assert ingest.check_upload(upload.id) is None
    assert list(Recording.objects.all()) == [recording]
    assert Job.objects.count() == 1


def test_a_delivery_during_a_check_leaves_it_alone(alice: User) -> None:
    upload = make_upload(alice, content=SPEECH)
    with uploads.checking(upload.id):
        assert ingest.check_upload(upload.id) is None
    assert Upload.objects.get().state == UploadState.CHECKING


class KilledError(BaseException):
    """Stands for kill -9: nothing catches it, nothing is tidied."""


def killed(*_: object, **__: object) -> NoReturn:
    raise KilledError


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (ingest, "take_in_safely"),
        (storage, "move_folder"),
        (uploads.jobs, "submit_job"),
    ],
)
def test_a_check_killed_anywhere_is_finished_by_the_next_one(
    place: object, name: str, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = make_upload(alice, content=SPEECH)
    with monkeypatch.context() as patch:
        patch.setattr(place, name, killed)
        with pytest.raises(KilledError):
            ingest.check_upload(upload.id)
    assert storage.sweep_orphans() == 0
    recording = ingest.check_upload(upload.id)
    assert recording is not None
    assert recording.source_path.read_bytes() == SPEECH
    assert Job.objects.count() == 1


def test_an_upload_cancelled_while_it_is_checked_leaves_nothing(
    alice: User, monkeypatch: pytest.MonkeyPatch, media_dir: Path
) -> None:
    upload = make_upload(alice, content=SPEECH)
    really = ingest.take_in_safely

    def cancel_first(source: Path, **options: Any) -> Any:
        made = really(source, **options)
        uploads.cancel_upload(upload=upload)
        return made

    monkeypatch.setattr(ingest, "take_in_safely", cancel_first)
    assert ingest.check_upload(upload.id) is None
    assert not Recording.objects.exists()
    assert not [path for path in media_dir.rglob("*") if path.is_file()]


def test_a_full_disk_postpones_the_check(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    upload = make_upload(alice, content=SPEECH)

    def full(source: Path, **_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(ingest, "take_in_safely", full)
        for _ in range(uploads.MAX_CHECKS + 1):
            ingest.check_upload(upload.id)
    upload.refresh_from_db()
    assert upload.state == UploadState.CHECKING
    assert ingest.check_upload(upload.id) is not None


def test_an_unexpected_fault_refuses_without_telling_its_text(
    alice: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    upload = make_upload(alice, content=SPEECH, name="secret plan.wav")

    def fail(*_: object, **__: object) -> NoReturn:
        raise ValueError("words of the recording")

    monkeypatch.setattr(ingest, "take_in_safely", fail)
    ingest.check_upload(upload.id)
    upload.refresh_from_db()
    assert upload.problem_code == "check_failed"
    assert "upload_check_failed" in caplog.text
    assert "words of the recording" not in caplog.text
    assert "secret plan" not in caplog.text


def test_a_database_that_was_away_refuses_nothing(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = make_upload(alice, content=SPEECH)

    def away(**_: object) -> NoReturn:
        raise OperationalError

    with monkeypatch.context() as patch:
        patch.setattr(uploads, "accept_upload", away)
        assert ingest.check_upload(upload.id) is None
    upload.refresh_from_db()
    assert upload.state == UploadState.CHECKING
    assert ingest.check_upload(upload.id) is not None


def test_hum_is_accepted_as_audio(alice: User) -> None:
    """Whether somebody speaks is for the passes to find out."""
    hum = np.sin(np.arange(SAMPLE_RATE) / 50).astype(np.float32) * 0.1
    assert ingest.check_upload(make_upload(alice, content=wav_bytes(hum)).id) is not None


def two_tracks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A silent track and one with two seconds of sound, which is speech here."""
    monkeypatch.setenv("ASR_BATCH_BACKEND", "scripted")
    silence = np.zeros(3 * SAMPLE_RATE, np.float32)
    return write_tracks(tmp_path / "two.mkv", silence, voice(2.0)).read_bytes()


def test_the_track_with_speech_is_taken_until_another_is_chosen(
    alice: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = make_upload(alice, content=two_tracks(tmp_path, monkeypatch))
    recording = ingest.check_upload(upload.id)
    assert recording is not None
    recording.refresh_from_db()
    assert tracks.plan_for(recording).track == 1
    assert (recording.player_name, recording.duration_ms) == ("player-1.m4a", 2000)
    ingest.make_player(recording.id)  # nobody has chosen
    jobs.cancel_job(job=Job.objects.get(), cancelled_by=alice)
    tracks.choose_track(recording=recording, track=0, requested_by=alice)
    jobs.store_progress(claim=claim_of(), progress=progress("Silence speaks."))
    ingest.make_player(str(recording.id))
    recording.refresh_from_db()
    assert (recording.player_name, recording.duration_ms) == ("player-0.m4a", 3000)
    assert sorted(path.name for path in recording.folder.iterdir()) == [
        "peaks.json",
        "player-0.m4a",
        "source.bin",
    ]


@pytest.mark.parametrize(
    ("fault", "player_name"),
    [(BrokenAudioError(), "player-0.none"), (OSError(errno.ENOSPC, "full"), "player-1.m4a")],
    ids=["broken", "full"],
)
def test_a_player_that_cannot_be_made_is_none_or_made_later(
    fault: Exception, player_name: str, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = make_recording(alice, track=0, player_name="player-1.m4a")

    def fail(*_: object, **__: object) -> NoReturn:
        raise fault

    monkeypatch.setattr(ingest, "take_in_safely", fail)
    ingest.make_player(recording.id)
    recording.refresh_from_db()
    assert (recording.player_name, recording.track) == (player_name, 0)


def test_no_player_is_made_for_a_deleted_recording(alice: User) -> None:
    recording = make_recording(alice, track=0, player_name="player-1.m4a")
    trash.delete_for_ever(recording=recording, deleted_by=alice)
    ingest.make_player(recording.id)
    assert not recording.folder.exists()
