"""Folders without a row are found; folders with one are never touched."""

from __future__ import annotations

import os
import time
from pathlib import Path
from uuid import uuid4

import pytest

from tests.fakes.live import make_session
from tests.fakes.recordings import make_recording, make_upload
from transcription.services import storage, uploads
from webapp.accounts.models import User


def age(folder: Path, by_s: float) -> None:
    then = time.time() - by_s
    os.utime(folder, (then, then))


def orphan(root: Path, by_s: float) -> Path:
    folder = root / str(uuid4())
    folder.mkdir(parents=True)
    (folder / "part.bin").write_bytes(b"x")
    age(folder, by_s)
    return folder


def test_old_orphans_go_to_the_trash_and_young_ones_stay(media_dir: Path, db: None) -> None:
    places = ("uploads", "recordings", "live")
    old = [orphan(media_dir / name, 2 * storage.ORPHAN_AGE_S) for name in places]
    young = orphan(media_dir / "uploads", 10)
    assert storage.sweep_orphans() == 3
    assert young.exists()
    assert not any(folder.exists() for folder in old)
    assert {folder.name for folder in old} == {f.name for f in (media_dir / "trash").iterdir()}


def test_trash_is_emptied_when_it_is_old(media_dir: Path, db: None) -> None:
    gone = orphan(media_dir / "trash", storage.TRASH_AGE_S + 10)
    kept = orphan(media_dir / "trash", storage.TRASH_AGE_S - 10)
    storage.sweep_orphans()
    assert not gone.exists()
    assert kept.exists()


def test_what_has_a_row_stays_however_old(alice: User, media_dir: Path) -> None:
    recording = make_recording(alice)
    upload = uploads.create_upload(owner=alice, display_name="a.wav", length_bytes=9)
    checked = make_upload(alice)
    # A check killed between the rename and its transaction.
    moved = media_dir / "recordings" / str(checked.id)
    checked.folder.rename(moved)
    session = make_session(alice)
    session.folder.mkdir(parents=True)
    # Its recording's folder comes before the row.
    unfinished = media_dir / "recordings" / str(session.id)
    unfinished.mkdir()
    stranger = media_dir / "recordings" / "README"
    stranger.mkdir()
    folders = (recording.folder, upload.folder, moved, session.folder, unfinished, stranger)
    for folder in folders:
        age(folder, 100 * storage.ORPHAN_AGE_S)
    assert storage.sweep_orphans() == 0
    assert all(folder.exists() for folder in folders)


def test_only_the_folder_of_a_row_is_ever_removed(media_dir: Path, tmp_path: Path) -> None:
    (media_dir / "recordings").mkdir()
    for folder in (tmp_path, media_dir, media_dir / "recordings", media_dir / "a" / "b" / "c"):
        with pytest.raises(ValueError, match="two below the media directory"):
            storage.remove_folder(folder)
    assert (media_dir / "recordings").exists()


def test_a_folder_moves_once_and_again_without_harm(media_dir: Path) -> None:
    old, new = media_dir / "a", media_dir / "b" / "c"
    old.mkdir()
    storage.move_folder(old, new)
    storage.move_folder(old, new)
    assert new.is_dir()
