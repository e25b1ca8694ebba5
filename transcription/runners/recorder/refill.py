"""Gives a lost audio stream back from disk, for an engine that must hear it again."""

from __future__ import annotations

import contextlib
from typing import Any, Final

from redis import Redis
from redis.exceptions import WatchError

from asr_engine.protocol import AudioEntry, AudioEntryKind, audio_key, whole_key
from transcription.runners.recorder.track import REFILLED_ID_MS, AudioTrack

TRIES: Final = 10
"""Packets come while the stream is rewritten."""


def refill_audio(audio: Redis, track: AudioTrack, resume_sample: int) -> bool:
    """Put what lies between `resume_sample` and the stream's first entry before that entry, and
    mark the stream as whole.

    The ids of present entries stay, so that readers go on where they are. False where nothing was
    missing. Raises RedisError; WatchError when the stream changed with every try.
    """
    for _ in range(TRIES - 1):
        with contextlib.suppress(WatchError):
            return _refill(audio, track, resume_sample)
    return _refill(audio, track, resume_sample)


def _refill(audio: Redis, track: AudioTrack, resume_sample: int) -> bool:
    key = audio_key(track.session_id)
    with audio.pipeline() as pipeline:
        pipeline.watch(key)  # type: ignore[no-untyped-call]
        present: Any = pipeline.xrange(key)
        first_sample = track.written_sample
        for _, fields in present:
            with contextlib.suppress(KeyError, ValueError):
                first_sample = min(first_sample, AudioEntry.from_fields(fields).first_sample)
                break
        is_missing = first_sample > resume_sample
        pipeline.multi()
        if is_missing:
            pipeline.delete(key)
            missing = track.entries_between(resume_sample, first_sample)
            for number, entry in enumerate(missing, start=1):
                pipeline.xadd(key, entry.as_fields(), id=f"{REFILLED_ID_MS}-{number}")
            for entry_id, fields in present:
                pipeline.xadd(key, fields, id=entry_id)
        if track.is_ended and not present:
            end = AudioEntry(AudioEntryKind.END, track.written_sample)
            pipeline.xadd(key, end.as_fields())
        pipeline.set(whole_key(track.session_id), "1")  # on this server and no later one
        pipeline.execute()
    return is_missing
