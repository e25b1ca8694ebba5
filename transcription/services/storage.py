"""Folders and bytes on disk: durable writes, locks that die with their process, removal.

A folder is named by the id of its row. Folders come before rows and go after them, so a process
killed between leaves at most a folder without a row, which `sweep_orphans` finds.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import UUID

from django.conf import settings

from transcription.errors import NoSpaceError, NotFoundError, UploadBusyError
from transcription.models import LiveSession, Recording, Upload, UploadState

RESERVE_BYTES: Final = 256 * 1024**2
"""Room that uploads leave for the database and for live audio."""
ORPHAN_AGE_S: Final = 3600
TRASH_AGE_S: Final = 7 * 24 * 3600
"""An orphan may come from a database restored from a backup, so it waits before it goes."""
PLACES: Final = ("recordings", "live", "uploads", "trash")
"""Where in the media directory the folder of a row may lie."""

_NO_SPACE: Final = {errno.ENOSPC, errno.EDQUOT}


def free_bytes() -> int:
    """Bytes that uploads may still use."""
    root = Path(settings.MEDIA_ROOT)
    root.mkdir(parents=True, exist_ok=True)
    return max(0, shutil.disk_usage(root).free - RESERVE_BYTES)


def make_part(path: Path) -> None:
    """Make an empty file in a new folder of its own, both durable. Raises NoSpaceError."""
    try:
        path.parent.mkdir(parents=True)
        path.touch()
        sync_folder(path.parent)
        sync_folder(path.parent.parent)
    except OSError as error:
        raise_if_full(error)
        raise


@contextmanager
def exclusive(*paths: Path) -> Iterator[int]:
    """Open the first of `paths` that exists, for reading and writing, as its only user.

    Yields the descriptor. The lock is the kernel's, so a killed process leaves none behind. Raises
    NotFoundError where none exists, UploadBusyError where another process or thread has it.
    """
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        break
    else:
        raise NotFoundError
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UploadBusyError from None
        yield descriptor
    finally:
        os.close(descriptor)


def write_at(descriptor: int, offset_bytes: int, chunks: Iterable[bytes]) -> int:
    """Write `chunks` from `offset_bytes` on; they are on disk when this returns the end.

    Raises NoSpaceError.
    """
    try:
        os.lseek(descriptor, offset_bytes, os.SEEK_SET)
        for chunk in chunks:
            rest = memoryview(chunk)
            while rest:
                written = os.write(descriptor, rest)
                rest = rest[written:]
                offset_bytes += written
        os.fsync(descriptor)
    except OSError as error:
        raise_if_full(error)
        raise
    return offset_bytes


def raise_if_full(error: OSError) -> None:
    """Raises NoSpaceError where `error` says that the disk (or a quota) is full."""
    if error.errno in _NO_SPACE:
        raise NoSpaceError from error


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def move_folder(old: Path, new: Path) -> None:
    """Rename `old` to `new` durably; harmless where that has been done."""
    new.parent.mkdir(parents=True, exist_ok=True)
    try:
        old.rename(new)
    except FileNotFoundError:
        if not new.is_dir():
            raise NotFoundError from None
    sync_folder(new.parent)
    if old.parent.is_dir():
        sync_folder(old.parent)


def remove_folder(folder: Path) -> None:
    """Remove the folder of one row with all that is in it; harmless where absent."""
    if folder.parent.parent != Path(settings.MEDIA_ROOT):
        raise ValueError("only folders of rows, two below the media directory, may be removed")
    shutil.rmtree(folder, ignore_errors=True)


def remove_all_of(thing_id: UUID) -> bool:
    """Remove every folder with this id, wherever it lies; whether none is left."""
    folders = [Path(settings.MEDIA_ROOT) / place / str(thing_id) for place in PLACES]
    for folder in folders:
        remove_folder(folder)
    return not any(folder.exists() for folder in folders)


def sweep_orphans() -> int:
    """Put folders without a row into `trash/`, empty the trash of what is old; count the moves."""
    root = Path(settings.MEDIA_ROOT)
    in_use = set(
        Upload.objects.filter(state__in=(UploadState.RECEIVING, UploadState.CHECKING)).values_list(
            "id", flat=True
        )
    )
    # Read after the uploads: an upload accepted in between is seen as a recording. A live session
    # makes its recording's folder before the row; both have its id.
    sessions = set(LiveSession.objects.values_list("id", flat=True))
    recordings = set(Recording.objects.values_list("id", flat=True)) | sessions
    moved = 0
    for folder in _old_folders(root / "uploads", ORPHAN_AGE_S):
        if UUID(folder.name) not in in_use:
            moved += _trash(folder)
    for folder in _old_folders(root / "recordings", ORPHAN_AGE_S):
        if UUID(folder.name) not in in_use | recordings:
            moved += _trash(folder)
    for folder in _old_folders(root / "live", ORPHAN_AGE_S):
        if UUID(folder.name) not in sessions:
            moved += _trash(folder)
    for folder in _old_folders(root / "trash", TRASH_AGE_S):
        remove_folder(folder)
    return moved


def folders_of_rows(root: Path) -> Iterator[Path]:
    """Folders in `root` that are named by an id."""
    for folder in root.iterdir() if root.is_dir() else ():
        with contextlib.suppress(ValueError):
            UUID(folder.name)
            if folder.is_dir():
                yield folder


def _old_folders(root: Path, age_s: float) -> Iterator[Path]:
    """Those of the `folders_of_rows` that have not changed for `age_s`."""
    for folder in folders_of_rows(root):
        with contextlib.suppress(FileNotFoundError):
            if folder.stat().st_mtime < time.time() - age_s:
                yield folder


def _trash(folder: Path) -> bool:
    target = Path(settings.MEDIA_ROOT) / "trash" / folder.name
    target.parent.mkdir(exist_ok=True)
    try:
        folder.rename(target)
    except OSError:  # gone meanwhile, or in the trash already under this name
        return False
    os.utime(target)
    return True
