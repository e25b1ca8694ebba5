"""Files of sessions that have ended, made beside the recorder's loop.

One thread, since hours of audio take seconds and others are still speaking. It touches neither the
database nor the broker: the loop stores what comes out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

import structlog

from asr_engine.audio import samples_to_ms
from asr_engine.batch.player import make_player_file
from transcription.models import Recording
from transcription.runners.recorder.flac import write_verified_flac
from transcription.services import storage
from transcription.services.live_sessions import StoredAudio

log = structlog.get_logger(__name__)

RETRY_S: Final = 30.0
"""After a failure, such as a full disk. The PCM stays until a later try succeeds."""


def make_recording_files(session_id: str, pcm: Path) -> StoredAudio | None:
    """FLAC, player file and peaks of a session in its recording's folder; None without audio.

    May be done again after a crash at any point. Raises OSError, FlacMismatchError and others.
    """
    if pcm.stat().st_size == 0:
        return None
    recording = Recording(id=session_id)
    recording.folder.mkdir(parents=True, exist_ok=True)
    samples = write_verified_flac(pcm, recording.source_path)
    player = make_player_file(recording.source_path, recording.folder)
    storage.sync_folder(recording.folder)
    storage.sync_folder(recording.folder.parent)
    return StoredAudio(
        duration_ms=samples_to_ms(samples),
        size_bytes=recording.source_path.stat().st_size,
        container="flac",
        codec="flac",
        media_type=player.media_type,
        player_name=player.name,
    )


class Finisher:
    """Used by the loop's thread alone."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="finish")
        self._running: dict[str, Future[StoredAudio | None]] = {}
        self._failed_at_s: dict[str, float] = {}

    def begin(self, session_id: str, pcm: Path) -> None:
        """Harmless while it runs already, and for a while after it failed."""
        if time.monotonic() - self._failed_at_s.get(session_id, -RETRY_S) < RETRY_S:
            return
        if session_id not in self._running:
            self._running[session_id] = self._pool.submit(make_recording_files, session_id, pcm)

    def take_done(self) -> Iterator[tuple[str, StoredAudio | None]]:
        for session_id, future in list(self._running.items()):
            if not future.done():
                continue
            del self._running[session_id]
            error = future.exception()
            if error is None:
                self._failed_at_s.pop(session_id, None)
                yield session_id, future.result()
            else:
                self._failed_at_s[session_id] = time.monotonic()
                log.error("live_file_failed", session=session_id, error=type(error).__name__)

    def forget(self, session_id: str) -> None:
        """Nothing more is to be made for a session; what runs for it ends unheard of."""
        self._failed_at_s.pop(session_id, None)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
