"""One session's audio between the audio server and the disk.

Raw PCM16 lies at offset sample × 2, so that writing it again does no harm; what never came is
zeros. A sample is acknowledged when it, and all before it, is on disk.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from asr_engine.audio import BYTES_PER_SAMPLE, SAMPLE_RATE, samples_to_ms
from asr_engine.protocol import AudioEntry, AudioEntryKind
from transcription.models import LiveMarkKind, LiveSession

MARKED_GAP_SAMPLES: Final = SAMPLE_RATE // 10
"""A shorter jump is filled but not told: it is the sound card's, not the network's."""
CLOCK_PAIR_EVERY_MS: Final = 10 * 60 * 1000
REFILLED_ID_MS: Final = 1
"""Milliseconds part of the ids of entries that were refilled from disk: before any real one."""
REFILL_SAMPLES: Final = SAMPLE_RATE


@dataclass(frozen=True, slots=True)
class TrackMark:
    """A gap or a pause that an entry showed; `wall_ms` is the audio server's clock."""

    kind: LiveMarkKind
    start_ms: int
    end_ms: int
    wall_ms: int


@dataclass(frozen=True, slots=True)
class _Held:
    entry_id: bytes
    end_sample: int
    is_audio: bool


class AudioTrack:
    """Not thread-safe, except `sync`."""

    def __init__(self, session: LiveSession, acknowledged_sample: int) -> None:
        self.session_id = str(session.id)
        self.path = session.pcm_path
        self.last_id = b"0-0"
        self.last_at_ms = 0
        self.written_sample = acknowledged_sample
        self.synced_sample = acknowledged_sample
        self.is_ended = False
        self.clock: list[list[int]] = [list(pair) for pair in session.clock]
        self._is_new_run = not self.clock
        self._held: deque[_Held] = deque()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def close(self) -> None:
        os.close(self._descriptor)

    def accept(self, entry_id: bytes, entry: AudioEntry) -> TrackMark | None:
        """Write an entry; samples that are held already are left as they are. Raises OSError."""
        wall_ms = int(entry_id.split(b"-")[0])
        is_audio = entry.kind is AudioEntryKind.AUDIO
        mark = None
        if entry.kind is AudioEntryKind.END:
            self.is_ended = True
        elif entry.kind is AudioEntryKind.PAUSED:
            at_ms = samples_to_ms(entry.first_sample)
            mark = TrackMark(LiveMarkKind.PAUSED, at_ms, at_ms, wall_ms)
            self._is_new_run = True
        elif is_audio and not self.is_ended:  # the engine hears nothing after the end either
            mark = self._write(entry, wall_ms)
        self._held.append(_Held(entry_id, entry.end_sample, is_audio))
        self.last_id, self.last_at_ms = entry_id, wall_ms
        return mark

    def _write(self, entry: AudioEntry, wall_ms: int) -> TrackMark | None:
        gap = entry.first_sample - self.written_sample
        mark = None
        if gap >= MARKED_GAP_SAMPLES:
            start_ms, end_ms = samples_to_ms(self.written_sample), samples_to_ms(entry.first_sample)
            mark = TrackMark(LiveMarkKind.GAP, start_ms, end_ms, wall_ms)
        payload = entry.payload[max(0, -gap) * BYTES_PER_SAMPLE :]
        if payload:
            start = max(entry.first_sample, self.written_sample)
            _write_at(self._descriptor, payload, start * BYTES_PER_SAMPLE)
            self.written_sample = entry.end_sample
        if wall_ms != REFILLED_ID_MS:
            self._pair(entry.end_sample, wall_ms)
        return mark

    def _pair(self, sample: int, wall_ms: int) -> None:
        """Keep for each run (and every ten minutes) the pair that came with the least delay."""
        position_ms = samples_to_ms(sample)
        if self._is_new_run or (
            position_ms - samples_to_ms(self.clock[-1][0]) > CLOCK_PAIR_EVERY_MS
        ):
            self.clock.append([sample, wall_ms])
            self._is_new_run = False
        elif wall_ms - position_ms < self.clock[-1][1] - samples_to_ms(self.clock[-1][0]):
            self.clock[-1] = [sample, wall_ms]

    def sync(self) -> int:
        """Put what was written on disk; returns the sample up to which it is. Any thread."""
        written = self.written_sample
        os.fdatasync(self._descriptor)
        return written

    def trim_id(self, resume_sample: int) -> bytes | None:
        """Id of the first entry that must stay; None where nothing may go.

        A mark stays until the engine is past it, the end for good: it is what a successor needs.
        """
        limit = min(self.synced_sample, resume_sample)
        is_trimmed = False
        while len(self._held) > 1:
            held = self._held[0]
            if held.end_sample > limit or (not held.is_audio and held.end_sample >= limit):
                break
            self._held.popleft()
            is_trimmed = True
        return self._held[0].entry_id if is_trimmed else None

    def entries_between(self, first_sample: int, end_sample: int) -> Iterator[AudioEntry]:
        """Audio from disk, as entries of a second."""
        for start in range(first_sample, end_sample, REFILL_SAMPLES):
            count = min(REFILL_SAMPLES, end_sample - start)
            payload = os.pread(self._descriptor, count * BYTES_PER_SAMPLE, start * BYTES_PER_SAMPLE)
            yield AudioEntry(AudioEntryKind.AUDIO, start, payload)


def _write_at(descriptor: int, payload: bytes, offset_bytes: int) -> None:
    rest = memoryview(payload)
    while rest:
        count = os.pwrite(descriptor, rest, offset_bytes)
        rest = rest[count:]
        offset_bytes += count
