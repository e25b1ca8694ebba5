"""Recordings named by their path: who may, from where, and what survives a killed copy."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from transcription.errors import ForbiddenError, InvalidInputError, NotFoundError
from transcription.models import Upload, UploadState
from transcription.services import intake_folder, uploads
from webapp.accounts.models import Role, User

CONTENT = os.urandom(5000)


@pytest.fixture
def folder(tmp_path: Path, settings: Settings) -> Path:
    folder = tmp_path / "intake"
    (folder / "2026").mkdir(parents=True)
    (folder / "2026" / "talk.wav").write_bytes(CONTENT)
    settings.SITE = settings.SITE.model_copy(update={"intake_folders": f" {folder} ,"})
    return folder


def name_it(owner: User, path: Path | str) -> Upload:
    return intake_folder.create_upload_of_path(owner=owner, path=str(path))


@pytest.mark.usefixtures("sent")
def test_a_file_of_a_listed_folder_is_copied_and_checked(
    administrator: User,
    folder: Path,
    sent: list[tuple[str, ...]],
    django_capture_on_commit_callbacks,
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        upload = name_it(administrator, folder / "2026" / "talk.wav")
    assert sent == [("transcription.copy_upload", str(upload.id))]
    assert (upload.display_name, upload.state) == ("talk.wav", UploadState.RECEIVING)
    intake_folder.copy_upload(upload.id)
    upload.refresh_from_db()
    assert upload.state == UploadState.CHECKING
    assert upload.part_path.read_bytes() == CONTENT
    assert (folder / "2026" / "talk.wav").read_bytes() == CONTENT
    intake_folder.copy_upload(upload.id)  # a message that comes twice does nothing
    assert Upload.objects.get().offset_bytes == len(CONTENT)


@pytest.mark.parametrize(
    ("role", "may"), [(Role.ADMINISTRATOR, True), (Role.SERVICE, True), (Role.STAFF, False)]
)
def test_only_administrators_and_service_accounts_name_paths(
    role: Role, may: bool, alice: User, folder: Path, sent: list[tuple[str, ...]]
) -> None:
    alice.role = role
    if may:
        assert name_it(alice, folder / "2026" / "talk.wav").owner == alice
    else:
        with pytest.raises(ForbiddenError):
            name_it(alice, folder / "2026" / "talk.wav")


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "2026/talk.wav",
        "{folder}/../secret",
        "{folder}",
        "{folder}/a\0b",
        "{folder}x/a",
    ],
)
def test_a_path_outside_the_listed_folders_is_refused(
    path: str, administrator: User, folder: Path
) -> None:
    with pytest.raises(InvalidInputError):
        name_it(administrator, path.format(folder=folder))
    assert not Upload.objects.exists()


def test_without_a_listed_folder_there_are_no_paths(administrator: User, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="takes no recordings"):
        name_it(administrator, tmp_path / "talk.wav")


@pytest.mark.parametrize("kind", ["missing", "folder", "link", "link on the way", "pipe"])
def test_what_is_no_file_of_its_own_is_not_found(
    kind: str, administrator: User, folder: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_bytes(b"key")
    place = folder / "thing"
    if kind == "folder":
        place.mkdir()
    elif kind == "link":
        place.symlink_to(secret / "key")
    elif kind == "link on the way":
        place.symlink_to(secret)
        place /= "key"
    elif kind == "pipe":
        os.mkfifo(place)
    with pytest.raises(NotFoundError):
        name_it(administrator, place)


def test_a_link_that_takes_the_file_s_place_is_not_followed(
    administrator: User, folder: Path, tmp_path: Path, sent: list[tuple[str, ...]]
) -> None:
    file = folder / "2026" / "talk.wav"
    upload = name_it(administrator, file)
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(len(CONTENT)))
    file.unlink()
    file.symlink_to(secret)
    intake_folder.copy_upload(upload.id)
    upload.refresh_from_db()
    assert (upload.state, upload.problem_code) == (UploadState.REFUSED, "file_unreadable")
    assert not upload.folder.exists()


def test_a_file_that_grew_is_refused(
    administrator: User, folder: Path, sent: list[tuple[str, ...]]
) -> None:
    file = folder / "2026" / "talk.wav"
    upload = name_it(administrator, file)
    file.write_bytes(CONTENT + b"more")
    intake_folder.copy_upload(upload.id)
    upload.refresh_from_db()
    assert (upload.state, upload.problem_code) == (UploadState.REFUSED, "file_changed")


def test_a_file_that_is_written_while_it_is_read_is_refused(
    administrator: User, folder: Path, sent: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake_folder, "READ_BYTES", 1000)
    file = folder / "2026" / "talk.wav"
    upload = name_it(administrator, file)
    pread = os.pread

    def pread_slowly(descriptor: int, length: int, offset: int) -> bytes:
        os.utime(file, ns=(0, offset))
        return pread(descriptor, length, offset)

    monkeypatch.setattr(intake_folder.os, "pread", pread_slowly)
    intake_folder.copy_upload(upload.id)
    upload.refresh_from_db()
    assert upload.problem_code == "file_changed"


def test_a_killed_copy_goes_on_at_its_offset(
    administrator: User, folder: Path, sent: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake_folder, "PIECE_BYTES", 2000)
    upload = name_it(administrator, folder / "2026" / "talk.wav")
    uploads.append_upload(upload=upload, offset_bytes=0, chunks=[CONTENT[:2000]])
    read: list[int] = []
    pread = os.pread

    def noted(descriptor: int, length: int, offset: int) -> bytes:
        read.append(offset)
        return pread(descriptor, length, offset)

    monkeypatch.setattr(intake_folder.os, "pread", noted)
    intake_folder.copy_upload(upload.id)
    assert read == [2000, 4000]
    assert upload.part_path.read_bytes() == CONTENT


def test_a_copy_whose_message_was_lost_is_asked_for_again(
    administrator: User, folder: Path, sent: list[tuple[str, ...]]
) -> None:
    upload = name_it(administrator, folder / "2026" / "talk.wav")
    by_tus = uploads.create_upload(owner=administrator, display_name="a", length_bytes=3)
    sent.clear()
    intake_folder.ask_for_copies()
    assert sent == []
    Upload.objects.update(touched_at=timezone.now() - timedelta(minutes=1))
    intake_folder.ask_for_copies()
    assert sent == [("transcription.copy_upload", str(upload.id))]
    intake_folder.copy_upload(by_tus.id)
    by_tus.refresh_from_db()
    assert by_tus.offset_bytes == 0


def test_a_full_disk_postpones_the_copy(
    administrator: User, folder: Path, sent: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = name_it(administrator, folder / "2026" / "talk.wav")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(
        "transcription.services.storage.os", SimpleNamespace(**{**vars(os), "write": full})
    )
    intake_folder.copy_upload(upload.id)
    upload.refresh_from_db()
    assert upload.state == UploadState.RECEIVING
