"""The check of an upload: is it audio that we can read, which of it, and what does the page play?

Runs in the chores worker, as does the making of another player where another track is chosen. It
may be killed at any point and begun again: what it makes is made anew under the same names, and
`services.uploads.checking` lets one check run at a time.
"""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DatabaseError

from asr_engine.batch.intake import take_in_safely
from asr_engine.batch.player import PLAYER_STEM
from asr_engine.errors import AudioError
from transcription.errors import NoSpaceError, NotFoundError, UploadBusyError
from transcription.models import Recording, Upload
from transcription.services import storage, tracks, uploads
from transcription.services.uploads import CHECK_FAILED_CODE, CHECK_FAILED_PROBLEM, CheckedAudio

log = structlog.get_logger(__name__)


def check_upload(upload_id: UUID | str) -> Recording | None:
    """Accept or refuse a complete upload; None where it is refused, gone, or looked at already."""
    try:
        with uploads.checking(upload_id) as upload:
            return None if upload is None else _check(upload)
    except UploadBusyError:  # another delivery of the same message
        return None


def make_player(recording_id: UUID | str) -> None:
    """Play the track that somebody has chosen; nothing where it is played already, or gone."""
    recording = Recording.objects.filter(id=recording_id).first()
    if recording is None or not tracks.needs_player(recording):
        return
    try:
        audio = _examine(recording.source_path, track=recording.track)
    except AudioError as error:
        log.warning("player_not_made", recording=str(recording_id), code=error.code)
        tracks.store_no_player(recording=recording)
    except NoSpaceError:
        log.warning("player_postponed", recording=str(recording_id))
    except FileNotFoundError:
        log.info("recording_deleted_while_player_made", recording=str(recording_id))
    else:
        if tracks.store_player(recording=recording, audio=audio):
            for path in recording.folder.glob(f"{PLAYER_STEM}*"):
                if path.name != audio.player_name:
                    path.unlink(missing_ok=True)


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


def _examine(source: Path, *, track: int | None = None) -> CheckedAudio:
    limit_s = settings.SITE.max_recording_hours * 3600
    try:
        found = take_in_safely(source, max_duration_s=limit_s, track=track)
    except OSError as error:
        storage.raise_if_full(error)
        raise
    return CheckedAudio(
        duration_ms=found.probe.duration_ms,
        container=found.probe.container,
        codec=found.probe.codec,
        player_name=found.player.name,
        media_type=found.player.media_type,
        is_damaged=found.probe.is_damaged,
        missing_of_ms=found.probe.missing_of_ms,
        tracks=found.tracks,
    )
