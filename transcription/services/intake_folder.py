"""Files of this machine that become uploads: named by their path, copied by the chores worker.

A folder is open to tools only where an administrator lists it (`TRANSCRIBE_INTAKE_FOLDERS`), and
only administrators and service accounts may name a file there: whoever has a path could otherwise
read what somebody else left. No link is followed, on no part of the way.

A copy goes on where it was killed: the upload's offset is the truth, as for one that comes by tus.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from transcription.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    NoSpaceError,
    NotFoundError,
    UploadBusyError,
)
from transcription.models import Upload, UploadState
from transcription.queue import Task, send, wake_on_commit
from transcription.services import uploads
from transcription.services.guarded_folders import lies_beneath, open_beneath
from transcription.services.job_options import AS_USUAL, JobOptions
from webapp.accounts.models import Role, User

log = structlog.get_logger(__name__)

PIECE_BYTES: Final = 64 * 1024**2
"""Durable after so much: a killed copy repeats no more than this."""
READ_BYTES: Final = 1024**2
COPY_SILENCE: Final = timedelta(seconds=30)
"""A copy that has brought nothing for so long may have been lost: the sweep asks again."""
TRUSTED_ROLES: Final = (Role.ADMINISTRATOR, Role.SERVICE)
CHANGED_CODE: Final = "file_changed"
CHANGED_PROBLEM: Final = "The file changed while it was read. Hand it in again when it is complete."
UNREADABLE_CODE: Final = "file_unreadable"
UNREADABLE_PROBLEM: Final = "The file cannot be read any more on the server."


class _ChangedError(Exception):
    """The file is not what it was when its copy began."""


def create_upload_of_path(
    *, owner: User, path: str, options: JobOptions = AS_USUAL, display_name: str = ""
) -> Upload:
    """An upload whose bytes are copied from the file at `path`, beneath a listed folder.

    Raises ForbiddenError for people who may not name paths, InvalidInputError for a path outside,
    NotFoundError where there is no such file, and what `uploads.create_upload` raises.
    """
    if owner.role not in TRUSTED_ROLES:
        raise ForbiddenError("Only administrators and service accounts may name a path.")
    roots = settings.SITE.intake_roots
    if not roots:
        raise InvalidInputError("This server takes no recordings by their path.")
    file = Path(path)
    if "\0" in path or not any(lies_beneath(file, root) for root in roots):
        raise InvalidInputError("The path lies outside the folders that this server takes from.")
    try:
        with open_beneath(file, roots) as descriptor:
            length_bytes = os.fstat(descriptor).st_size
    except OSError:
        raise NotFoundError("There is no such file in that folder.") from None
    upload = uploads.create_upload(
        owner=owner,
        display_name=display_name or file.name,
        length_bytes=length_bytes,
        options=options,
        copied_from=str(file),
    )
    wake_on_commit(Task.COPY_UPLOAD, str(upload.id))
    return upload


def copy_upload(upload_id: UUID | str) -> None:
    """Bring the bytes of an upload from its file; harmless where another copy runs or it is gone.

    The file is refused where it shrinks, grows or is written while it is read.
    """
    upload = _copied().filter(id=upload_id).first()
    if upload is None:
        return
    try:
        with open_beneath(Path(upload.copied_from), _all_roots()) as descriptor:
            _copy(upload, descriptor)
    except (UploadBusyError, NotFoundError, ConflictError):
        pass  # another copy is at it, or the upload was cancelled
    except NoSpaceError:
        log.warning("copy_postponed", upload=str(upload.id))
    except _ChangedError:
        uploads.refuse_upload(upload=upload, code=CHANGED_CODE, problem=CHANGED_PROBLEM)
    except OSError as error:
        log.warning("copy_failed", upload=str(upload.id), error=error.strerror)
        uploads.refuse_upload(upload=upload, code=UNREADABLE_CODE, problem=UNREADABLE_PROBLEM)


def ask_for_copies(*, silent_for: timedelta = COPY_SILENCE) -> None:
    """Ask again for each copy that has brought nothing for so long."""
    silent = _copied().filter(touched_at__lte=timezone.now() - silent_for)
    for upload_id in silent.values_list("id", flat=True):
        send(Task.COPY_UPLOAD, str(upload_id), expires_s=COPY_SILENCE.total_seconds())


def _copy(upload: Upload, descriptor: int) -> None:
    before = os.fstat(descriptor)
    if before.st_size != upload.length_bytes:
        raise _ChangedError
    while upload.state == UploadState.RECEIVING:
        upload = uploads.append_upload(
            upload=upload,
            offset_bytes=upload.offset_bytes,
            chunks=_piece(descriptor, upload.offset_bytes, before),
        )


def _piece(descriptor: int, offset_bytes: int, before: os.stat_result) -> Iterator[bytes]:
    end = min(offset_bytes + PIECE_BYTES, before.st_size)
    while offset_bytes < end:
        chunk = os.pread(descriptor, min(READ_BYTES, end - offset_bytes), offset_bytes)
        now = os.fstat(descriptor)
        if not chunk or (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise _ChangedError
        offset_bytes += len(chunk)
        yield chunk


def _copied() -> QuerySet[Upload]:
    return Upload.objects.filter(state=UploadState.RECEIVING).exclude(copied_from="")


def _all_roots() -> list[Path]:
    watched = settings.SITE.watch_folder
    return [*settings.SITE.intake_roots, *([Path(watched)] if watched else [])]
