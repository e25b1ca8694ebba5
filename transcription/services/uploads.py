"""Uploads: bytes on their way in, from the first to the verdict of the check.

The offset in the row is the truth: bytes below it are on disk. What a file holds beyond it came
from a request that did not end, and is written over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import F, Sum
from django.utils import timezone

from asr_engine.errors import EmptyAudioError
from asr_engine.tracks import TrackSurvey
from transcription.errors import (
    ConflictError,
    NoSpaceError,
    NotFoundError,
    ProductError,
    StaleOffsetError,
    TooLargeError,
)
from transcription.models import Recording, RecordingSource, Upload, UploadState
from transcription.queue import Task, send, wake_on_commit
from transcription.services import jobs, retention, storage
from transcription.services.job_options import AS_USUAL, JobOptions
from transcription.services.names import clean_display_name, title_of
from transcription.services.space import check_space
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act, User

UPLOAD_TRANSITIONS: Final = {
    UploadState.RECEIVING: {UploadState.CHECKING, UploadState.REFUSED},
    UploadState.CHECKING: {UploadState.ACCEPTED, UploadState.REFUSED},
    UploadState.ACCEPTED: set(),
    UploadState.REFUSED: set(),
}
UPLOAD_EXPIRY: Final = timedelta(hours=24)
"""An upload that nobody continues for so long is removed."""
REFUSAL_SHOWN: Final = timedelta(days=7)
CHECK_SILENCE: Final = timedelta(seconds=30)
"""A check that has not been begun again for so long may have been lost: the sweep asks again."""
MAX_CHECKS: Final = 3
CHECK_FAILED_CODE: Final = "check_failed"
CHECK_FAILED_PROBLEM: Final = (
    "The server could not check this recording. Please upload it again, or in another format."
)
DAMAGED_NOTICE: Final = (
    "Parts of this recording are damaged and could not be decoded; their words are missing."
)
SHORT_NOTICE: Final = (
    "This recording states a length of {stated} but holds {held}: the rest is cut off or damaged, "
    "and its words are missing."
)


@dataclass(frozen=True, slots=True)
class CheckedAudio:
    """What the check found: the recording's facts, what its tracks hold where there is a choice,
    and the file that the page plays.
    """

    duration_ms: int
    container: str
    codec: str
    player_name: str
    media_type: str
    is_damaged: bool
    tracks: tuple[TrackSurvey, ...] = ()
    missing_of_ms: int | None = None
    """The length that its header states, where the recording holds less."""

    @property
    def notice(self) -> str:
        """What the owner is told of sound that was lost; empty where none was."""
        if self.missing_of_ms is not None:
            stated, held = _clock(self.missing_of_ms), _clock(self.duration_ms)
            return SHORT_NOTICE.format(stated=stated, held=held)
        return DAMAGED_NOTICE if self.is_damaged else ""


def create_upload(
    *,
    owner: User,
    display_name: str,
    length_bytes: int,
    options: JobOptions = AS_USUAL,
    recording_expires_at: datetime | None = None,
    copied_from: str = "",
    upload_id: UUID | None = None,
) -> Upload:
    """Make room for `length_bytes`.

    Raises EmptyAudioError, TooLargeError, NoSpaceError, and what `check_space` does.

    `copied_from` names a file of this machine whose bytes `intake_folder.copy_upload` will bring.
    """
    if length_bytes == 0:
        raise EmptyAudioError
    limit = settings.SITE.max_upload_bytes
    if length_bytes > limit:
        raise TooLargeError(
            f"This recording is larger than this server accepts ({limit / 1024**3:.3g} GB)."
        )
    if length_bytes > storage.free_bytes() - _promised_bytes():
        raise NoSpaceError
    upload = Upload(
        id=upload_id or uuid4(),
        owner=owner,
        display_name=clean_display_name(display_name),
        length_bytes=length_bytes,
        recording_expires_at=recording_expires_at,
        copied_from=copied_from,
        language=options.language,
        mixes_languages=options.mixes_languages,
        finds_speakers=options.finds_speakers,
        speaker_count=options.speaker_count,
        is_draft_only=options.is_draft_only,
    )
    storage.make_part(upload.part_path)
    try:
        with transaction.atomic():
            check_space(owner=owner, length_bytes=length_bytes)
            upload.save(force_insert=True)
    except ProductError:
        storage.remove_folder(upload.folder)
        raise
    return upload


def append_upload(*, upload: Upload, offset_bytes: int, chunks: Iterable[bytes]) -> Upload:
    """Write `chunks` at `offset_bytes`; the offset moves once they are on disk.

    The last byte hands the upload to its check. Raises UploadBusyError while another request
    writes, StaleOffsetError for another offset than the row's, TooLargeError for bytes beyond the
    announced length, ConflictError when no bytes are expected any more, NoSpaceError.
    """
    with storage.exclusive(upload.part_path) as part:
        current = _reload(upload)
        if current.state != UploadState.RECEIVING:
            raise ConflictError("This upload is complete.")
        if current.offset_bytes != offset_bytes:
            raise StaleOffsetError
        room_bytes = current.length_bytes - offset_bytes
        end = storage.write_at(part, offset_bytes, _at_most(chunks, room_bytes))
        if not Upload.objects.filter(
            id=upload.id, state=UploadState.RECEIVING, offset_bytes=offset_bytes
        ).update(offset_bytes=end, touched_at=timezone.now()):
            raise NotFoundError  # cancelled meanwhile
    # The lock is free again: the check needs it.
    if end == current.length_bytes and _move(upload.id, UploadState.CHECKING):
        wake_on_commit(Task.CHECK_UPLOAD, str(upload.id))
    return _reload(upload)


def cancel_upload(*, upload: Upload) -> None:
    """Forget an upload and its bytes. Raises ConflictError once it has become a recording."""
    Upload.objects.filter(id=upload.id).exclude(state=UploadState.ACCEPTED).delete()
    if Upload.objects.filter(id=upload.id).exists():
        raise ConflictError("This upload has become a recording already.")
    _remove_bytes(upload.id)


@contextmanager
def checking(upload_id: UUID | str) -> Iterator[Upload | None]:
    """Hold an upload for its check; None where there is nothing (more) to check.

    One check runs at a time however often the message comes, and a killed one frees its hold. An
    upload whose check has been begun too often without an end is refused: it takes the process
    that looks at it down.
    """
    upload = Upload(id=UUID(str(upload_id)))
    moved = Recording(id=upload.id)
    try:
        with storage.exclusive(upload.part_path, upload.folder / "source.bin", moved.source_path):
            begun = Upload.objects.filter(id=upload.id, state=UploadState.CHECKING).update(
                checks=F("checks") + 1, touched_at=timezone.now()
            )
            if not begun:
                yield None
                return
            upload = Upload.objects.select_related("owner").get(id=upload.id)
            if upload.checks > MAX_CHECKS:
                refuse_upload(upload=upload, code=CHECK_FAILED_CODE, problem=CHECK_FAILED_PROBLEM)
                yield None
                return
            yield upload
    except (NotFoundError, Upload.DoesNotExist):
        yield None


def accept_upload(*, upload: Upload, audio: CheckedAudio) -> Recording:
    """Turn a checked upload into a recording with a queued job; its folder moves by a rename.

    Raises NotFoundError where it was cancelled meanwhile; nothing is left then.
    """
    recording = Recording(
        id=upload.id,
        owner=upload.owner,
        title=title_of(upload.display_name),
        display_name=upload.display_name,
        source=RecordingSource.UPLOAD,
        team=retention.usual_team_of(upload.owner),
        requested_language=upload.language,
        mixes_languages=upload.mixes_languages,
        finds_speakers=upload.finds_speakers,
        speaker_count=upload.speaker_count,
        duration_ms=audio.duration_ms,
        size_bytes=upload.length_bytes,
        container=audio.container,
        codec=audio.codec,
        media_type=audio.media_type,
        player_name=audio.player_name,
        tracks=[track.as_json() for track in audio.tracks],
        notice=audio.notice,
        expires_at=upload.recording_expires_at,
    )
    storage.move_folder(upload.folder, recording.folder)
    with transaction.atomic():
        recording.save(force_insert=True)
        is_accepted = _move(upload.id, UploadState.ACCEPTED, recording=recording)
        if is_accepted:
            record_act(act=Act.CREATED, actor=upload.owner, on=recording, detail={"by": "upload"})
            jobs.submit_job(
                recording=recording,
                requested_by=upload.owner,
                language=upload.language,
                is_draft_only=upload.is_draft_only,
            )
        else:
            transaction.set_rollback(True)
    if not is_accepted:
        storage.remove_folder(recording.folder)
        raise NotFoundError
    return recording


def refuse_upload(*, upload: Upload, code: str, problem: str) -> None:
    """Say why, and free the space. Harmless where the upload is gone."""
    if _move(upload.id, UploadState.REFUSED, problem_code=code, problem=problem):
        _remove_bytes(upload.id)


def postpone_check(*, upload: Upload) -> None:
    """The disk is full: the sweep asks for the check again, and this one does not count."""
    Upload.objects.filter(id=upload.id).update(checks=F("checks") - 1)


def expiry_of(upload: Upload) -> datetime:
    """When an unfinished upload is removed if nobody continues it."""
    return upload.touched_at + UPLOAD_EXPIRY


def sweep_uploads() -> None:
    """Remove what nobody continues, forget old refusals, find checks whose message was lost."""
    now = timezone.now()
    # A process was killed between the last offset and the hand-over.
    complete = Upload.objects.filter(
        state=UploadState.RECEIVING, offset_bytes=F("length_bytes")
    ).values_list("id", flat=True)
    for upload_id in complete:
        _move(upload_id, UploadState.CHECKING)
    expired = Upload.objects.filter(state=UploadState.RECEIVING, touched_at__lt=now - UPLOAD_EXPIRY)
    for upload_id in expired.values_list("id", flat=True):
        if expired.filter(id=upload_id).delete()[0]:
            _remove_bytes(upload_id)
    Upload.objects.filter(state=UploadState.REFUSED, touched_at__lt=now - REFUSAL_SHOWN).delete()
    ask_for_checks(silent_for=CHECK_SILENCE)


def ask_for_checks(*, silent_for: timedelta) -> None:
    """Ask again for each check that has not been begun for so long; one under way is left alone."""
    silent = Upload.objects.filter(
        state=UploadState.CHECKING, touched_at__lte=timezone.now() - silent_for
    ).values_list("id", flat=True)
    for upload_id in silent:
        send(Task.CHECK_UPLOAD, str(upload_id), expires_s=CHECK_SILENCE.total_seconds())


def _clock(length_ms: int) -> str:
    minutes, seconds = divmod(length_ms // 1000, 60)
    if minutes < 60:
        return f"{minutes}:{seconds:02}"
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _move(upload_id: UUID, to: UploadState, **fields: object) -> bool:
    """Change the state where the table allows it; False where it does not (any more)."""
    sources = [state for state, targets in UPLOAD_TRANSITIONS.items() if to in targets]
    changed = Upload.objects.filter(id=upload_id, state__in=sources).update(state=to, **fields)
    return changed == 1


def _reload(upload: Upload) -> Upload:
    current = Upload.objects.filter(id=upload.id).first()
    if current is None:
        raise NotFoundError
    return current


def _promised_bytes() -> int:
    """Bytes that unfinished uploads will still bring."""
    total = Upload.objects.filter(state=UploadState.RECEIVING).aggregate(
        bytes=Sum(F("length_bytes") - F("offset_bytes"))
    )["bytes"]
    return int(total or 0)


def _at_most(chunks: Iterable[bytes], room_bytes: int) -> Iterator[bytes]:
    for chunk in chunks:
        room_bytes -= len(chunk)
        if room_bytes < 0:
            raise TooLargeError("There are more bytes than this upload announced.")
        yield chunk


def _remove_bytes(upload_id: UUID) -> None:
    """Both places where the bytes of an upload that is no recording may lie."""
    storage.remove_folder(Upload(id=upload_id).folder)
    if not Recording.objects.filter(id=upload_id).exists():
        storage.remove_folder(Recording(id=upload_id).folder)
