"""One recording on its road, as seen by the client that waits for it.

What is waited for is read from the database, more and more rarely up to once a second: nothing that
is told only once may be missed, and no thread is held in between.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Final
from uuid import uuid4

from django.conf import settings
from django.utils import timezone

from asr_engine.results import Segment
from transcription import selectors
from transcription.api.openai.answers import Heard
from transcription.api.openai.border import RefusedError, in_thread
from transcription.api.openai.forms import Asked
from transcription.errors import ConflictError, NotFoundError
from transcription.models import (
    Job,
    JobState,
    Recording,
    TranscriptRevision,
    Upload,
    UploadState,
)
from transcription.services import job_states, jobs, transcripts, trash, uploads
from webapp.accounts.models import User

PAUSES_S: Final = (0.1, 0.1, 0.2, 0.2, 0.4, 0.4, 0.8, 1.0)
"""Between two looks; the last one stays."""
LEFTOVER_HOURS: Final = 24.0
"""What no process lived to remove goes by its date."""


class Hearing:
    """Whoever calls `begin` calls `end`, whatever happens."""

    def __init__(self, user: User, *, still_allowed: Callable[[], User]) -> None:
        """`still_allowed` raises where `user` may ask no more; it is called in a thread."""
        self._id = uuid4()
        self._user = user
        self._still_allowed = still_allowed
        self._segments: list[Segment] = []

    async def begin(self, asked: Asked) -> None:
        """Store the file and ask for its check. Raises what `uploads.create_upload` raises."""
        storing = asyncio.ensure_future(in_thread(self._store)(asked))
        try:
            await asyncio.shield(storing)
        except asyncio.CancelledError:
            # Its thread goes on: what it stores must be there for `end` to remove.
            await asyncio.wait([storing])
            raise

    async def accepted(self) -> None:
        """Until the recording is being transcribed. Raises RefusedError, NotFoundError."""
        async for _ in self._looks():
            if await in_thread(self._job)() is not None:
                return

    async def growing(self) -> AsyncIterator[list[Segment]]:
        """All final segments so far, at each look until the last is among them.

        Raises RefusedError, NotFoundError, and where rights have ended meanwhile.
        """
        async for _ in self._looks():
            is_done = await in_thread(self._read_on)()
            yield self._segments
            if is_done:
                return

    async def heard(self) -> Heard:
        """Until the transcript is complete. Raises as `growing` does."""
        async for _ in self._looks():
            job = await in_thread(self._job)()
            if job is not None and job.state == JobState.DONE:
                break
        heard: Heard = await in_thread(self._read_all)()
        return heard

    async def end(self) -> None:
        """Remove the recording and its transcript, unless the site keeps them for a while."""
        if not settings.SITE.openai_keep_hours:
            await in_thread(self._remove)()

    async def _looks(self) -> AsyncIterator[None]:
        for pause_s in itertools.chain(PAUSES_S, itertools.repeat(PAUSES_S[-1])):
            yield
            await asyncio.sleep(pause_s)

    # In a thread ------------------------------------------------------------------------------

    def _store(self, asked: Asked) -> None:
        hours = settings.SITE.openai_keep_hours or LEFTOVER_HOURS
        with asked.file.open() as file:  # Django closes it only where there is an answer to send
            upload = uploads.create_upload(
                owner=self._user,
                display_name=asked.file.name or "",
                length_bytes=asked.file.size or 0,
                options=asked.options,
                recording_expires_at=timezone.now() + timedelta(hours=hours),
                upload_id=self._id,
            )
            uploads.append_upload(upload=upload, offset_bytes=0, chunks=file.chunks())

    def _job(self) -> Job | None:
        """The job of the recording; None while the upload is checked."""
        upload = Upload.objects.filter(id=self._id).first()
        if upload is None:
            raise NotFoundError("The recording was deleted while it was transcribed.")
        if upload.state == UploadState.REFUSED:
            raise RefusedError(status=422, code=upload.problem_code, sentence=upload.problem)
        job = Job.objects.filter(recording=self._id).order_by("enqueued_at").first()
        if job is None:
            return None
        if job.state == JobState.CANCELLED:
            raise RefusedError(status=410, code="cancelled", sentence=job_states.CANCELLED_PROBLEM)
        if job.state == JobState.FAILED:
            raise RefusedError(status=500, code=job.problem_code, sentence=job.problem)
        return job

    def _read_on(self) -> bool:
        """Read the segments that are new; True if there will be no more."""
        self._still_allowed()
        job = self._job()
        if job is None:
            return False
        revision = TranscriptRevision.objects.filter(job=job, kind=jobs.passes_of(job)[-1]).first()
        if revision is not None:
            self._segments += transcripts.own_segments_of(revision, start=len(self._segments))
        return job.state == JobState.DONE

    def _read_all(self) -> Heard:
        """As the pages show it."""
        recording = selectors.access_recording_by_id(self._still_allowed(), self._id)
        revision = transcripts.current_revision(recording)
        segments = [] if revision is None else transcripts.segments_of(revision)
        return Heard(
            segments=sorted(segments, key=lambda segment: segment.start_ms),
            language=recording.language,
            duration_ms=recording.duration_ms,
        )

    def _remove(self) -> None:
        """Whatever it has become by now; one that is held by an administrator stays."""
        try:
            uploads.cancel_upload(upload=Upload(id=self._id))
        except ConflictError:
            recording = Recording.objects.filter(id=self._id).first()
            if recording is not None and not recording.is_held:
                trash.delete_for_ever(recording=recording, deleted_by=self._user)
