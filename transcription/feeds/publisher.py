"""Audio from this process's sockets to the audio server, many packets in one round trip.

One XADD awaited per packet exhausts any pool of connections at a few hundred sockets. Here every
socket has a lane; one task takes at most one entry from each lane and sends them all in one round
trip, while the next ones gather.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from redis.asyncio import Redis
from redis.exceptions import RedisError

from asr_engine.protocol import (
    MAX_PACKET_BYTES,
    PUT_AUDIO_LUA,
    AudioEntry,
    AudioEntryKind,
    audio_key,
    writer_key,
)

GATHER_S: Final = 0.004
"""Before each round trip. What comes so shortly after the first goes along: a write and a read cost
more than the packets in them, here and at the audio server, and the engine looks every 10 ms."""


class Lane:
    """Entries of one socket, in order.

    After the first failure a lane takes and sends nothing more (`is_broken`): an entry that came
    through after a lost one would let the recorder acknowledge audio that it never saw.
    """

    def __init__(self, session: str, connection: str) -> None:
        self.session = session
        self.connection = connection
        self.is_broken = False
        self.is_superseded = False
        self._entries: deque[AudioEntry] = deque()
        self._taken = 0
        self._taken_samples = 0

    @property
    def usual_entry_samples(self) -> float:
        """Mean length of the audio entries so far; 0 before the first."""
        return self._taken_samples / max(1, self._taken)

    def put(self, entry: AudioEntry) -> None:
        self._entries.append(entry)

    def __len__(self) -> int:
        return len(self._entries)

    def take(self) -> AudioEntry | None:
        """The next entry; packets that join each other become one, up to MAX_PACKET_BYTES."""
        if self.is_broken or not self._entries:
            return None
        first = self._entries.popleft()
        if first.kind is not AudioEntryKind.AUDIO:
            return first
        payloads = [first.payload]
        size, end = len(first.payload), first.end_sample
        while self._entries:
            entry = self._entries[0]
            size += len(entry.payload)
            if (
                entry.kind is not AudioEntryKind.AUDIO
                or entry.first_sample != end
                or size > MAX_PACKET_BYTES
            ):
                break
            payloads.append(self._entries.popleft().payload)
            end = entry.end_sample
        self._taken += 1
        self._taken_samples += end - first.first_sample
        return AudioEntry(AudioEntryKind.AUDIO, first.first_sample, b"".join(payloads))


@dataclass(frozen=True, slots=True)
class StreamHead:
    """What the audio server holds of a session: entries, and where its audio ends."""

    entries: int
    last: AudioEntry | None
    last_at_ms: int


class AudioPublisher:
    """Belongs to one event loop."""

    def __init__(self, audio: Redis) -> None:
        self._audio = audio
        self._busy: set[Lane] = set()
        self._task: asyncio.Task[None] | None = None

    def put(self, lane: Lane, entry: AudioEntry) -> None:
        """Queue an entry; it leaves with the next round trip."""
        if lane.is_broken:
            return
        lane.put(entry)
        self._busy.add(lane)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._send_all())

    async def take_over(self, session: str, connection: str) -> None:
        """From the return on, audio of other connections is refused. Raises RedisError."""
        await self._audio.set(writer_key(session), connection)

    async def drain(self) -> None:
        """Wait until everything that was put has left."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def head(self, session: str) -> StreamHead:
        """Raises RedisError."""
        async with self._audio.pipeline(transaction=False) as pipeline:
            pipeline.xlen(audio_key(session))
            pipeline.xrevrange(audio_key(session), count=1)
            entries, last = await pipeline.execute()
        if not last:
            return StreamHead(entries, None, 0)
        entry_id, fields = last[0]
        return StreamHead(entries, AudioEntry.from_fields(fields), int(entry_id.split(b"-")[0]))

    async def backlog_entries(self, session: str) -> int:
        """Raises RedisError."""
        return int(await self._audio.xlen(audio_key(session)))

    async def _send_all(self) -> None:
        try:
            while self._busy:
                await asyncio.sleep(GATHER_S)
                await self._send_once()
        finally:
            self._task = None

    async def _send_once(self) -> None:
        lanes: list[Lane] = []
        async with self._audio.pipeline(transaction=False) as pipeline:
            for lane in list(self._busy):
                entry = lane.take()
                if entry is None:
                    self._busy.discard(lane)
                    continue
                lanes.append(lane)
                pipeline.eval(
                    PUT_AUDIO_LUA,
                    2,
                    audio_key(lane.session),
                    writer_key(lane.session),
                    lane.connection,
                    entry.kind.value,
                    str(entry.first_sample),
                    entry.payload,
                )
            try:
                results: list[Any] = await pipeline.execute(raise_on_error=False)
            except (RedisError, OSError) as error:
                results = [error] * len(lanes)
        for lane, result in zip(lanes, results, strict=True):
            if isinstance(result, Exception):
                lane.is_broken = True
            elif result in {0, -1}:
                lane.is_broken = True
                lane.is_superseded = result == 0
