"""The check of an upload: is it audio that we can read, and what does the page play?

Runs in the chores worker. It may be killed at any point and begun again: what it makes is made
anew under the same names, and `services.uploads.checking` lets one check run at a time.
"""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DatabaseError

from asr_engine.batch.player import make_player_file
from asr_engine.batch.probe import probe_safely
from asr_engine.errors import AudioError
from transcription.errors import NoSpaceError, NotFoundError, UploadBusyError
from transcription.models import Recording, Upload
from transcription.services import storage, uploads
from transcription.services.uploads import CHECK_FAILED_CODE, CHECK_FAILED_PROBLEM, CheckedAudio

log = structlog.get_logger(__name__)


def check_upload(upload_id: UUID | str) -> Recording | None:
    """Accept or refuse a complete upload; None where it is refused, gone, or looked at already."""
    try:
        with uploads.checking(upload_id) as upload:
            return None if upload is None else _check(upload)
    except UploadBusyError:  # another delivery of the same message
        return None


def _check(upload: Upload) -> Recording | None:
    try:
        source = _source_of(upload)
        audio = _examine(source)
        return uploads.accept_upload(upload=upload, audio=audio)
    except AudioError as error:
        uploads.refuse_upload(upload=upload, code=error.code, problem=error.sentence)
    except NoSpaceError:
        log.warning("upload_check_postponed", upload=str(upload.id))
        uploads.postpone_check(upload=upload)
    except NotFoundError:
        log.info("upload_cancelled_while_checked", upload=str(upload.id))
    except DatabaseError as error:  # nothing is known of the audio: the sweep asks again
        log.warning("upload_check_interrupted", upload=str(upload.id), error=type(error).__name__)
    except Exception as error:  # noqa: BLE001 - a task's border; the decoder may raise anything
        # Its text could quote the recording, so only its kind is logged.
        log.error(  # noqa: TRY400 - no traceback for the same reason
            "upload_check_failed", upload=str(upload.id), error=type(error).__name__
        )
        uploads.refuse_upload(upload=upload, code=CHECK_FAILED_CODE, problem=CHECK_FAILED_PROBLEM)
    return None


def _source_of(upload: Upload) -> Path:
    """The bytes under the name that they keep, wherever an earlier check left them."""
    moved = Recording(id=upload.id).source_path
    if moved.exists():
        return moved
    source = upload.folder / moved.name
    if not source.exists():
        upload.part_path.rename(source)
        storage.sync_folder(source.parent)
    return source


def _examine(source: Path) -> CheckedAudio:
    probe = probe_safely(source, max_duration_s=settings.SITE.max_recording_hours * 3600)
    try:
        player = make_player_file(source, source.parent)
    except OSError as error:
        storage.raise_if_full(error)
        raise
    return CheckedAudio(
        duration_ms=probe.duration_ms,
        container=probe.container,
        codec=probe.codec,
        player_name=player.name,
        media_type=player.media_type,
        is_damaged=probe.is_damaged,
    )
