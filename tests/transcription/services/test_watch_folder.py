"""The watch folder: nothing twice, nothing lost, nothing outside touched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.core.cache import cache
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.fakes.databases import database_url
from tests.fakes.recordings import make_recording
from transcription.models import Recording, Upload, UploadState
from transcription.services import intake_folder, uploads, watch_folder
from transcription.services.watch_folder import take_from_watch_folder
from webapp.accounts.models import User
from webapp.accounts.service_accounts import make_service_account

ROOT = Path(__file__).resolve().parents[3]
CONTENT = b"RIFF" * 1000
Look = Callable[[float], None]


@pytest.fixture
def folder(alice: User, tmp_path: Path, settings: Settings, sent: list[tuple[str, ...]]) -> Path:
    """Alice's, who does not wait long for a file."""
    folder = tmp_path / "watched"
    folder.mkdir()
    changes = {"watch_folder": str(folder), "watch_owner": "ALICE@example.org"}
    settings.SITE = settings.SITE.model_copy(update={**changes, "watch_settle_seconds": 10.0})
    cache.delete(watch_folder.SEEN_KEY)
    return folder


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Look:
    """`look(s)` looks at the folder `s` seconds after the test began."""
    begun = timezone.now()

    def at(seconds: float) -> None:
        def now() -> datetime:
            return begun + timedelta(seconds=seconds)

        monkeypatch.setattr(watch_folder.timezone, "now", now)
        take_from_watch_folder()

    return at


def names(folder: Path) -> list[str]:
    """Every file, without what the server keeps for itself."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(str(path) for path in files if path.name != watch_folder.SENT)


def taken(folder: Path) -> list[str]:
    return [name for name in names(folder) if name.startswith(".taken/")]


def accept(upload: Upload) -> Recording:
    recording = make_recording(upload.owner, id=upload.id)
    Upload.objects.filter(id=upload.id).update(state=UploadState.ACCEPTED, recording=recording)
    return recording


def test_a_file_at_rest_becomes_the_owner_s_and_is_put_away_when_accepted(
    folder: Path, look: Look, alice: User
) -> None:
    (folder / "Besprechung.wav").write_bytes(CONTENT)
    look(0)
    look(9)
    assert names(folder) == ["Besprechung.wav"]
    look(11)
    upload = Upload.objects.get()
    assert (upload.owner, upload.display_name) == (alice, "Besprechung.wav")
    assert names(folder) == [f".taken/{upload.id}/Besprechung.wav"]
    intake_folder.copy_upload(upload.id)
    assert upload.part_path.read_bytes() == CONTENT
    look(16)
    assert names(folder) == [f".taken/{upload.id}/Besprechung.wav"]
    accept(upload)
    look(21)
    assert names(folder) == ["done/Besprechung.wav"]
    look(40)
    assert Upload.objects.count() == 1


def test_a_file_that_still_grows_is_left_alone(folder: Path, look: Look) -> None:
    file = folder / "talk.wav"
    for second in range(0, 40, 8):
        with file.open("ab") as growing:
            growing.write(CONTENT)
        look(second)
    assert names(folder) == ["talk.wav"]
    look(50)
    assert len(taken(folder)) == 1


def test_a_file_that_somebody_writes_is_left_alone_however_still_it_is(
    folder: Path, look: Look
) -> None:
    with (folder / "talk.wav").open("wb") as writing:
        writing.write(CONTENT)
        writing.flush()
        look(0)
        look(60)
        assert names(folder) == ["talk.wav"]
    look(61)
    assert len(taken(folder)) == 1


@pytest.mark.parametrize("name", [".hidden.wav", "talk.wav.part", "~talk.wav", "a.TMP", "b.wav~"])
def test_partial_names_are_left_alone(name: str, folder: Path, look: Look) -> None:
    (folder / name).write_bytes(CONTENT)
    look(0)
    look(60)
    assert names(folder) == [name]


def test_an_empty_file_gets_time_to_be_filled_then_a_reason(folder: Path, look: Look) -> None:
    (folder / "talk.wav").touch()
    look(0)
    look(60)
    assert names(folder) == ["talk.wav"]
    look(700)
    assert names(folder) == ["failed/talk.wav", "failed/talk.wav.reason.txt"]
    assert (folder / "failed" / "talk.wav.reason.txt").read_text().endswith(".\n")


def test_subfolders_are_looked_into_and_kept(folder: Path, look: Look) -> None:
    (folder / "room 1" / "May").mkdir(parents=True)
    (folder / "room 1" / "May" / "talk.wav").write_bytes(CONTENT)
    look(0)
    look(11)
    accept(Upload.objects.get())
    look(16)
    assert names(folder) == ["done/room 1/May/talk.wav"]
    look(60)
    assert Upload.objects.count() == 1


def test_what_cannot_be_read_is_put_away_with_the_reason(folder: Path, look: Look) -> None:
    for name in ("first", "second"):
        (folder / "notes.txt").write_bytes(CONTENT)
        look(0)
        look(11)
        upload = Upload.objects.get(state=UploadState.RECEIVING)
        uploads.refuse_upload(upload=upload, code="no_audio", problem=f"The {name} is no audio.")
        look(16)
    assert names(folder / "failed") == [
        "notes (2).txt",
        "notes (2).txt.reason.txt",
        "notes.txt",
        "notes.txt.reason.txt",
    ]
    assert (folder / "failed" / "notes.txt.reason.txt").read_text() == "The first is no audio.\n"


def test_a_name_that_is_no_text_is_put_away(folder: Path, look: Look) -> None:
    with open(os.fsencode(folder) + b"/\xff.wav", "wb") as file:  # noqa: PTH123  # bytes
        file.write(CONTENT)
    look(0)
    look(11)
    assert not Upload.objects.exists()
    reasons = [path for path in (folder / "failed").iterdir() if path.suffix == ".txt"]
    assert "UTF-8" in reasons[0].read_text()


def test_a_full_disk_leaves_it_for_later(
    folder: Path, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "talk.wav").write_bytes(CONTENT)
    monkeypatch.setattr(uploads.storage, "free_bytes", lambda: 0)
    look(0)
    look(11)
    assert len(taken(folder)) == 1
    assert not Upload.objects.exists()
    monkeypatch.undo()
    take_from_watch_folder()
    assert Upload.objects.count() == 1


def test_what_was_deleted_on_the_server_does_not_come_back(folder: Path, look: Look) -> None:
    (folder / "talk.wav").write_bytes(CONTENT)
    look(0)
    look(11)
    accept(Upload.objects.get()).delete()
    look(16)
    look(60)
    assert names(folder) == ["failed/talk.wav", "failed/talk.wav.reason.txt"]
    assert not Upload.objects.exists()


def test_a_service_account_is_named_by_its_name(
    folder: Path, look: Look, administrator: User, settings: Settings
) -> None:
    account = make_service_account(name="Scanner", made_by=administrator)
    settings.SITE = settings.SITE.model_copy(update={"watch_owner": "Scanner"})
    (folder / "talk.wav").write_bytes(CONTENT)
    look(0)
    look(11)
    assert Upload.objects.get().owner == account


@pytest.mark.parametrize("active", [True, False])
def test_without_an_active_owner_nothing_is_taken(
    active: bool, folder: Path, look: Look, alice: User, settings: Settings
) -> None:
    if active:
        settings.SITE = settings.SITE.model_copy(update={"watch_owner": "nobody@example.org"})
    else:
        User.objects.filter(pk=alice.pk).update(is_active=False)
    (folder / "talk.wav").write_bytes(CONTENT)
    look(0)
    look(60)
    assert names(folder) == ["talk.wav"]


def test_a_folder_that_is_not_there_is_no_fault(folder: Path, look: Look) -> None:
    folder.rmdir()
    look(0)
    assert not folder.exists()


# Links --------------------------------------------------------------------------------------------


def test_links_are_left_alone(folder: Path, look: Look, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.wav").write_bytes(CONTENT)
    (folder / "file.wav").symlink_to(secret / "key.wav")
    (folder / "sub").symlink_to(secret)
    look(0)
    look(60)
    assert not Upload.objects.exists()
    assert names(secret) == ["key.wav"]


@pytest.mark.parametrize("name", [".taken", "done", "failed"])
def test_a_link_in_the_place_of_our_own_folders_leads_nowhere(
    name: str, folder: Path, look: Look, tmp_path: Path, alice: User
) -> None:
    """Else whoever may drop files could move the server's own."""
    recording = make_recording(alice)
    (folder / name).symlink_to(recording.folder.parent)
    (folder / "talk.wav").write_bytes(b"" if name == "failed" else CONTENT)
    look(0)
    look(700)
    for upload in Upload.objects.all():
        accept(upload)
    look(710)
    assert recording.source_path.exists()
    assert sorted(path.name for path in recording.folder.parent.iterdir() if path.is_file()) == []
    assert (folder / "talk.wav").exists() or len(taken(folder)) == 1


# Killed -------------------------------------------------------------------------------------------


class KilledError(BaseException):
    """What a killed process does not live to handle."""


def die(*_: object, **__: object) -> None:
    raise KilledError


@pytest.mark.parametrize(
    ("place", "name"),
    [(uploads, "create_upload"), (watch_folder._Look, "_note_sent"), (watch_folder.os, "fsync")],
)
def test_a_look_killed_anywhere_takes_nothing_twice_and_loses_nothing(
    place: object, name: str, folder: Path, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "talk.wav").write_bytes(CONTENT)
    look(0)
    with monkeypatch.context() as patched:
        patched.setattr(place, name, die)
        with pytest.raises(KilledError):
            look(11)
    look(20)
    finish_and_check(folder, look)


@pytest.mark.parametrize("name", ["rename", "fsync"])
def test_one_killed_while_it_puts_away_does_it_again(
    name: str, folder: Path, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "talk.wav").write_bytes(CONTENT)
    look(0)
    look(11)
    accept(Upload.objects.get())
    with monkeypatch.context() as patched:
        patched.setattr(watch_folder.os, name, die)
        with pytest.raises(KilledError):
            look(16)
    look(21)
    assert names(folder) == ["done/sub/talk.wav"]
    assert list((folder / ".taken").iterdir()) == []


@pytest.mark.django_db(transaction=True)
def test_a_process_killed_by_kill_9_is_gone_on_from(
    folder: Path, look: Look, alice: User, media_dir: Path
) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "talk.wav").write_bytes(CONTENT)
    look(0)
    look_long_ago()
    killed = subprocess.run(
        [sys.executable, "-m", "tests.fakes.watch_folder_process", str(media_dir)],
        cwd=ROOT,
        env={
            **os.environ,
            "TRANSCRIBE_DATABASE_URL": database_url(),
            "TRANSCRIBE_WATCH_FOLDER": str(folder),
            "TRANSCRIBE_WATCH_OWNER": alice.email,
        },
        check=False,
    )
    assert killed.returncode == -9
    assert Upload.objects.count() == 1
    look(20)
    finish_and_check(folder, look)


def look_long_ago() -> None:
    """What was seen was seen long before now: another process has no clock of this test."""
    seen = cache.get(watch_folder.SEEN_KEY)
    cache.set(watch_folder.SEEN_KEY, {key: (looks, 0.0) for key, (looks, _) in seen.items()})


def finish_and_check(folder: Path, look: Look) -> None:
    upload = Upload.objects.get()
    assert taken(folder) == [f".taken/{upload.id}/sub/talk.wav"]
    intake_folder.copy_upload(upload.id)
    assert upload.part_path.read_bytes() == CONTENT
    accept(upload)
    look(30)
    look(60)
    assert names(folder) == ["done/sub/talk.wav"]
    assert list((folder / ".taken").iterdir()) == []
    assert (Upload.objects.count(), Recording.objects.count()) == (1, 1)


def test_two_looks_at_once_are_one(folder: Path, look: Look) -> None:
    (folder / "talk.wav").write_bytes(CONTENT)
    look(0)
    opened = os.open(folder / ".taken", os.O_RDONLY)
    watch_folder.fcntl.flock(opened, watch_folder.fcntl.LOCK_EX)
    look(60)
    assert names(folder) == ["talk.wav"]
    os.close(opened)
    look(61)
    assert len(taken(folder)) == 1
