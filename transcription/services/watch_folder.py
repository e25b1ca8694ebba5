"""The watch folder: files that appear in it become recordings of one configured owner.

    file → .taken/<id>/file → copied and checked → done/file, or failed/file with the reason

A file is taken by a rename, which happens once; the id is its upload's and its recording's. So a
process killed anywhere takes nothing twice and loses nothing: the next look goes on from where the
file lies and what its rows say. `.taken/<id>/.sent` says that the upload was made: where it is gone
since, somebody deleted it, and it is not made again.

Others write to this folder, and may put links in it: see `guarded_folders`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final
from uuid import UUID, uuid4

import structlog
from django.conf import settings
from django.core.cache import cache
from django.db.models import Q
from django.utils import timezone

from asr_engine.errors import EngineError
from transcription.errors import ProductError
from transcription.models import Recording, Upload, UploadState
from transcription.queue import Task, wake_on_commit
from transcription.services import storage, uploads
from transcription.services.guarded_folders import enter, enter_root
from webapp.accounts.models import Role, User

log = structlog.get_logger(__name__)

TAKEN: Final = ".taken"
SENT: Final = ".sent"
DONE: Final = "done"
FAILED: Final = "failed"
PARTIAL_ENDS: Final = (
    *(".part", ".partial", ".tmp", ".temp", ".crdownload", ".download", ".filepart", ".upload"),
    *(".lock", "~"),
)
MAX_DEPTH: Final = 8
MAX_LOOKED: Final = 2000
MAX_TAKEN: Final = 50
"""In one look: what is left waits for the next."""
EMPTY_SETTLE_S: Final = 600.0
"""Some programs make an empty file first, and fill it later."""
SEEN_KEY: Final = "watch_folder_seen"
SEEN_FOR_S: Final = 24 * 3600
NAME_REASON: Final = "Its name, or that of its folder, is not valid UTF-8. Rename it."
DELETED_REASON: Final = "It was deleted on the server before this file was put away."


@dataclass(frozen=True, slots=True)
class _File:
    """A file to be taken, by its path from the root, and what it looked like."""

    path: PurePath
    signature: tuple[int, int, int]

    @property
    def key(self) -> str:
        """Names of people's files stay out of the broker."""
        return hashlib.sha256(os.fsencode(self.path)).hexdigest()


def owner_of_watch_folder() -> User | None:
    """Whose recordings they become; None where nobody active is named."""
    name = settings.SITE.watch_owner
    named = Q(email__iexact=name) | Q(role=Role.SERVICE, name=name)
    return User.objects.filter(named, is_active=True).first() if name else None


def take_from_watch_folder() -> None:
    """Take what has come to rest, and put away what was taken and is through.

    Does nothing where no folder is set, or where another process looks at this moment.
    """
    if not settings.SITE.watch_folder:
        return
    owner = owner_of_watch_folder()
    if owner is None:
        log.warning("watch_folder_has_no_owner")
        return
    root = Path(settings.SITE.watch_folder)
    try:
        with ExitStack() as opened:
            look = _Look(opened, root, owner)
            if look.is_alone():
                look.put_away()
                look.take()
    except OSError as error:  # a share that is not there at the moment
        log.warning("watch_folder_failed", error=error.strerror)


class _Look:
    """One look at the folder, alone."""

    def __init__(self, opened: ExitStack, root: Path, owner: User) -> None:
        self._root_path = root
        self._owner = owner
        self._root = enter_root(opened, root)
        self._taken = enter(opened, self._root, [TAKEN], makes_missing=True)

    def is_alone(self) -> bool:
        """The lock is the kernel's and goes with this look, or with its process."""
        try:
            fcntl.flock(self._taken, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    # What was taken --------------------------------------------------------------------------

    def put_away(self) -> None:
        """Move what is through; send what was taken by a process that was killed."""
        names = []
        for entry in os.scandir(self._taken):
            with contextlib.suppress(ValueError):
                names.append(UUID(entry.name))
        known = Upload.objects.in_bulk(names)
        for upload_id in names:
            try:
                self._put_away(upload_id, known.get(upload_id))
            except OSError as error:
                log.warning("watched_file_stuck", upload=str(upload_id), error=error.strerror)

    def _put_away(self, upload_id: UUID, upload: Upload | None) -> None:
        file = self._file_in(upload_id)
        if file is None:  # killed before the file was in, or after it was out
            self._forget(upload_id)
        elif upload is None and not self._was_sent(upload_id):
            self._send(upload_id, file)
        elif upload is None:
            kept = Recording.objects.filter(id=upload_id).exists()
            self._move(upload_id, file, reason="" if kept else DELETED_REASON)
        elif upload.state == UploadState.ACCEPTED:
            self._move(upload_id, file)
        elif upload.state == UploadState.REFUSED:
            self._move(upload_id, file, reason=upload.problem)
        else:
            self._note_sent(upload_id)

    def _file_in(self, upload_id: UUID) -> PurePath | None:
        """Path of the one file, from `.taken/<id>`."""
        for path, _, names, _ in os.fwalk(str(upload_id), dir_fd=self._taken):
            for name in names:
                file = PurePath(path, name).relative_to(str(upload_id))
                if file != PurePath(SENT):
                    return file
        return None

    def _send(self, upload_id: UUID, file: PurePath) -> None:
        """Make the upload; whatever will never become one goes to `failed`."""
        taken = PurePath(TAKEN, str(upload_id), file)
        if not _is_text(taken):
            self._move(upload_id, file, reason=NAME_REASON)
            return
        with ExitStack() as opened:
            folder = enter(opened, self._root, taken.parts[:-1])
            length_bytes = os.stat(file.name, dir_fd=folder, follow_symlinks=False).st_size
        storage.remove_folder(Upload(id=upload_id).folder)  # of a try that was killed
        try:
            uploads.create_upload(
                owner=self._owner,
                display_name=file.name,
                length_bytes=length_bytes,
                copied_from=str(self._root_path / taken),
                upload_id=upload_id,
            )
        except (ProductError, EngineError) as error:
            if not error.is_retryable:
                sentence = error.text if isinstance(error, ProductError) else error.sentence
                self._move(upload_id, file, reason=sentence)
            return
        self._note_sent(upload_id)
        wake_on_commit(Task.COPY_UPLOAD, str(upload_id))

    def _was_sent(self, upload_id: UUID) -> bool:
        try:
            os.stat(f"{upload_id}/{SENT}", dir_fd=self._taken, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def _note_sent(self, upload_id: UUID) -> None:
        with ExitStack() as opened:
            folder = enter(opened, self._taken, [str(upload_id)])
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(SENT, flags, 0o660, dir_fd=folder))

    def _move(self, upload_id: UUID, file: PurePath, *, reason: str = "") -> None:
        """To `done`, or with a `reason` to `failed`, under a name that is free there."""
        with ExitStack() as opened:
            source = enter(opened, self._taken, [str(upload_id), *file.parts[:-1]])
            place = [FAILED if reason else DONE, *file.parts[:-1]]
            target = enter(opened, self._root, place, makes_missing=True)
            name = _free_name(file, target)
            if reason:  # first: a file in `failed` always has its reason beside it
                _write(f"{name}.reason.txt", f"{reason}\n", target)
            os.rename(file.name, name, src_dir_fd=source, dst_dir_fd=target)
            os.fsync(target)
        self._forget(upload_id)
        log.info("watched_file_put_away", upload=str(upload_id), is_done=not reason)

    def _forget(self, upload_id: UUID) -> None:
        shutil.rmtree(str(upload_id), dir_fd=self._taken, ignore_errors=True)

    # What has come ---------------------------------------------------------------------------

    def take(self) -> None:
        """Take the files that have not changed for long enough and that nobody writes."""
        now = timezone.now().timestamp()
        before: dict[str, tuple[tuple[int, int, int], float]] = cache.get(SEEN_KEY, {})
        seen, left = {}, MAX_TAKEN
        for file in self._files():
            signature, since = before.get(file.key, (file.signature, now))
            since = since if signature == file.signature else now
            settle_s = settings.SITE.watch_settle_seconds
            if not file.signature[0]:
                settle_s = max(settle_s, EMPTY_SETTLE_S)
            if left and now - since >= settle_s and self._is_at_rest(file):
                left -= 1
                self._take(file)
            else:
                seen[file.key] = (file.signature, since)
        cache.set(SEEN_KEY, seen, SEEN_FOR_S)

    def _files(self) -> Iterator[_File]:
        """Regular files, in the folder and in those below; links are left alone."""
        count = 0
        for path, folders, names, folder in os.fwalk(".", dir_fd=self._root):
            here = PurePath(path)
            is_top = not here.parts
            apart = {DONE, FAILED} if is_top else set()
            folders[:] = sorted(
                name
                for name in folders
                if name not in apart and name[0] != "." and len(here.parts) < MAX_DEPTH
            )
            for name in sorted(names):
                if _is_partial(name):
                    continue
                with contextlib.suppress(FileNotFoundError):
                    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if stat.S_ISREG(found.st_mode):
                        count += 1
                        signature = (found.st_size, found.st_mtime_ns, found.st_ino)
                        yield _File(here / name, signature)
                if count >= MAX_LOOKED:
                    return

    def _is_at_rest(self, file: _File) -> bool:
        """Whether no process of this machine has it open for writing, as far as the kernel says.

        A lease on reading is granted only then. Other people's files and network shares have no
        leases: there, to stay unchanged must be enough.
        """
        with ExitStack() as opened:
            try:
                folder = enter(opened, self._root, file.path.parts[:-1])
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                descriptor = os.open(file.path.name, flags, dir_fd=folder)
            except OSError:
                return False
            opened.callback(os.close, descriptor)
            try:
                fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            except OSError as error:
                return error.errno not in {errno.EAGAIN, errno.EBUSY}
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            return True

    def _take(self, file: _File) -> None:
        upload_id = uuid4()
        try:
            with ExitStack() as opened:
                *folders, name = file.path.parts
                source = enter(opened, self._root, folders)
                place = [str(upload_id), *folders]
                target = enter(opened, self._taken, place, makes_missing=True)
                os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
                os.fsync(target)
            log.info("watched_file_taken", upload=str(upload_id))
            self._send(upload_id, file.path)
        except OSError as error:  # gone meanwhile, or not ours to move: the others go on
            log.warning("watched_file_not_taken", error=error.strerror)


def _is_partial(name: str) -> bool:
    return name[0] in ".~" or name.lower().endswith(PARTIAL_ENDS)


def _is_text(path: PurePath) -> bool:
    """A name of a file may be any bytes; the database stores text."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _free_name(file: PurePath, folder: int) -> str:
    taken, number = {entry.name for entry in os.scandir(folder)}, 1
    name = file.name
    while name in taken:
        number += 1
        name = f"{file.stem} ({number}){file.suffix}"
    return name


def _write(name: str, text: str, folder: int) -> None:
    """Over what a killed look left; a link of that name is not followed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o660, dir_fd=folder)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
