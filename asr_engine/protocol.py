"""The words that processes exchange through the broker and the audio server.

Owns every key, channel and payload shape between web, engine and recorder, and their encoding.
Does no I/O. `docs/architecture.md` tells the story; this module is the reference.

Broker (with append-only file)
    live:sessions                set     ids of sessions that an engine should be running
    live:{session}               hash    owner epoch next_utterance resume_sample mode_ms language
                                         acknowledged_sample is_paused
    live:{session}:capture       hash    capture_id connection: the socket that captures; expires
    live:events                  stream  EngineEvent, engine -> recorder, consumer group `recorder`
    live:{session}:captions      channel ViewerEvent, engine, recorder, web, jobs worker -> viewers;
                                         may be lost
    engine:{engine}              string  EngineStatus, expires after ENGINE_TTL_S without a beat
    engine:{engine}:commands     stream  Command, web -> engine; expires
    engines                      set     engine ids that have ever beaten (pruned by readers)
    reply:{request}              list    one Reply, expires
    recorder:leader              string  id of the recorder in charge, expires after RECORDER_TTL_S

Audio server (no persistence, `noeviction`)
    live:{session}:audio         stream  AudioEntry, web -> engine and recorder
    live:{session}:writer        string  the connection whose audio is taken (PUT_AUDIO_LUA)
    live:{session}:whole         string  set by the recorder, once nothing that an engine may need
                                         is on disk alone: what is missing then never came

The entry ids of an audio stream are the server's wall clock at arrival: they pair samples with the
time of day.

The session hash says who may write and where a successor begins. `owner` is `name:incarnation` of
the engine that runs the session, or empty when none does; `epoch` rises with every claim, and only
the engine that holds the present one may publish. Everything before `resume_sample` is final, as
utterances below `next_utterance`, or is silence: the audio stream may be trimmed up to there.

While a session waits (event `waiting`) it is not in `live:sessions` and `owner` is empty;
`next_utterance` and `resume_sample` stay, so that the next claim goes on where the last one ended
and hears what lies between as a gap. A consumer calls `client.request_stream` again before it
forwards audio to a session that waits; for a session that runs it is answered at once, so a
consumer that is not sure may simply ask. A session that ended (event `ended`) is not in
`live:sessions`; its hash and its audio stream are the recorder's to delete. A session in
`live:sessions` whose owner is empty or dead is taken over by any engine with a free slot. An engine
that drains asks another one, by `open` with itself as `owner`, to claim each of its sessions when
nobody speaks in it: at no moment does nobody hold the session.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, Final, Literal

from asr_engine.errors import BadPacketError

PROTOCOL_VERSION: Final = 1

SESSIONS_KEY: Final = "live:sessions"
EVENTS_KEY: Final = "live:events"
EVENTS_GROUP: Final = "recorder"
ENGINES_KEY: Final = "engines"
RECORDER_LEADER_KEY: Final = "recorder:leader"

COMMAND_FIELD: Final = "c"
"""The field of a command stream's entries that holds the Command."""

ENGINE_TTL_S: Final = 3
RECORDER_TTL_S: Final = 3
ADMISSION_TIMEOUT_S: Final = 2.0
MAX_BACKLOG_S: Final = 90
"""Unread audio per session beyond which the socket is closed: try later."""
IDLE_S: Final = 30
"""Seconds without a packet after which the slot is freed and the session waits."""

CAPTURE_TTL_S: Final = 12
"""Life of a capture's lease without renewal, that of a socket which vanished."""


def session_key(session: str) -> str:
    return f"live:{session}"


def audio_key(session: str) -> str:
    return f"live:{session}:audio"


def writer_key(session: str) -> str:
    return f"live:{session}:writer"


def whole_key(session: str) -> str:
    return f"live:{session}:whole"


def capture_key(session: str) -> str:
    return f"live:{session}:capture"


def captions_channel(session: str) -> str:
    return f"live:{session}:captions"


def engine_key(engine: str) -> str:
    return f"engine:{engine}"


def commands_key(engine: str) -> str:
    return f"engine:{engine}:commands"


def reply_key(request: str) -> str:
    return f"reply:{request}"


# Packets on the socket ---------------------------------------------------------------------------

PACKET_HEADER: Final = struct.Struct(">II")
"""Sequence number, index of the first sample: both unsigned 32 bits, big-endian."""

MAX_PACKET_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Packet:
    """Audio bytes as they came: PCM16 little-endian mono at the session's rate, or what else the
    socket's `hello` said."""

    sequence: int
    first_sample: int
    payload: bytes


def pack_packet(packet: Packet) -> bytes:
    return PACKET_HEADER.pack(packet.sequence, packet.first_sample) + packet.payload


def unpack_packet(
    data: bytes, *, sample_bytes: int = 2, max_bytes: int = MAX_PACKET_BYTES
) -> Packet:
    """Raises BadPacketError for a short header, an empty payload or one that is not of whole
    samples, or too many bytes."""
    if len(data) > max_bytes:
        raise BadPacketError("packet too large")
    if len(data) <= PACKET_HEADER.size:
        raise BadPacketError("packet without samples")
    payload = data[PACKET_HEADER.size :]
    if len(payload) % sample_bytes:
        raise BadPacketError("odd number of bytes")
    sequence, first_sample = PACKET_HEADER.unpack_from(data)
    return Packet(sequence, first_sample, payload)


# Audio stream ------------------------------------------------------------------------------------


class AudioEntryKind(StrEnum):
    """`audio` carries samples; the others are marks at `first_sample`."""

    AUDIO = "audio"
    PAUSED = "paused"
    RESUMED = "resumed"
    END = "end"


@dataclass(frozen=True, slots=True)
class AudioEntry:
    """One entry of a session's audio stream; `payload` is PCM16 LE mono at SAMPLE_RATE."""

    kind: AudioEntryKind
    first_sample: int
    payload: bytes = b""

    @property
    def end_sample(self) -> int:
        return self.first_sample + len(self.payload) // 2

    def as_fields(self) -> dict[Any, Any]:
        """Members as redis-py takes them, whose types do not agree between its calls."""
        fields: dict[Any, Any] = {"k": self.kind.value, "s": self.first_sample}
        if self.payload:
            fields["d"] = self.payload
        return fields

    @classmethod
    def from_fields(cls, fields: Mapping[bytes, bytes]) -> AudioEntry:
        """Raises KeyError, ValueError for what is no entry."""
        payload = fields.get(b"d", b"")
        if len(payload) % 2:
            raise ValueError("odd number of bytes")
        return cls(AudioEntryKind(fields[b"k"].decode()), int(fields[b"s"]), payload)


# Engine commands, replies, status ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Command:
    """`open` asks for admission, `set_mode` for another latency mode, `set_language` for another
    language: each is answered with a Reply to `request`. `drain` and `undrain` are not: the status
    tells."""

    kind: Literal["open", "set_mode", "set_language", "drain", "undrain"]
    session: str = ""
    request: str = ""
    language: str | None = None
    mode_ms: int = 0
    sent_at_s: float = 0.0
    """Wall clock, so that an engine ignores a request nobody waits for any more."""
    owner: str | None = None
    """`open`: who must hold the session, which is handed over; None takes it from anybody."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer to `open`, `set_mode` and `set_language`: admitted with a mode and a packet length, or
    refused with a code. `modes_ms` are those that this engine offers, ascending."""

    is_admitted: bool
    engine: str
    epoch: int = 0
    mode_ms: int = 0
    packet_ms: int = 0
    code: str = ""
    reason: str = ""
    modes_ms: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """What an engine says of itself with every beat."""

    engine: str
    model: str
    languages: tuple[str, ...]
    can_detect_language: bool
    modes_ms: tuple[int, ...]
    default_mode_ms: int
    slots: int
    free_slots: int
    is_draining: bool
    beat_at_s: float
    lag_ms: int = 0
    """Largest lag among its streams: batch work on the same machine waits while this is high."""
    sessions: int = 0
    """Sessions that it runs; an engine that is draining and has none may be stopped."""


# Engine events (broker stream, never lost) -------------------------------------------------------


class EngineEventKind(StrEnum):
    FINAL = "final"
    GAP = "gap"
    """Audio that the model failed on every time and that nobody heard. (Audio that never came is
    for the recorder to see, which has it on disk.)"""
    WAITING = "waiting"
    """No packets for IDLE_S: the slot is free, the session may come back."""
    ENDED = "ended"
    """Everything up to `end_sample` is finalised."""


@dataclass(frozen=True, slots=True)
class EngineEvent:
    """One entry of EVENTS_KEY. `utterance` is set for a final, `end_sample` for `ended`."""

    kind: EngineEventKind
    session: str
    epoch: int
    utterance: int | None = None
    start_ms: int = 0
    end_ms: int = 0
    text: str = ""
    words: tuple[dict[str, Any], ...] = ()
    language: str | None = None
    reason: str = ""
    end_sample: int = 0


# Viewer events (pub/sub, and the JSON of the captions socket) ------------------------------------


@dataclass(frozen=True, slots=True)
class ViewerEvent:
    """What viewers are told: the JSON of the captions channel and of the live sockets.

    type: ack partial final refined gap paused closed lag head state taken. `seq` numbers stored
    changes. `wire` has what a socket alone says (ready, history, error).
    """

    type: str
    session: str
    seq: int | None = None
    utterance: int | None = None
    start_ms: int | None = None
    end_ms: int | None = None
    text: str | None = None
    words: tuple[dict[str, Any], ...] | None = None
    stable_words: int | None = None
    heard_ms: int | None = None
    """`partial`: the engine had heard the audio up to here. What is later than that came late."""
    sample: int | None = None
    """`ack`: every sample below this one is on disk."""
    state: str | None = None
    behind_ms: int | None = None
    recording: str | None = None
    connection: str | None = None
    """`taken`: the capture that holds the session now."""


def members_of(value: Command | Reply | EngineStatus | EngineEvent | ViewerEvent) -> dict[str, Any]:
    """What is sent of `value`: members that are None are left out."""
    return {key: item for key, item in asdict(value).items() if item is not None}


def encode(value: Command | Reply | EngineStatus | EngineEvent | ViewerEvent) -> str:
    """Compact JSON of the `members_of`."""
    return json.dumps(members_of(value), ensure_ascii=False, separators=(",", ":"))


def decode_command(data: str | bytes) -> Command:
    return Command(**json.loads(data))


def _known_members(kind: type[Reply | EngineStatus], raw: dict[str, Any]) -> dict[str, Any]:
    """`raw` without what a newer process added: engines are upgraded one by one."""
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in raw.items() if name in names}


def decode_reply(data: str | bytes) -> Reply:
    raw = _known_members(Reply, json.loads(data))
    raw["modes_ms"] = tuple(raw.get("modes_ms", ()))
    return Reply(**raw)


def decode_status(data: str | bytes) -> EngineStatus:
    raw = _known_members(EngineStatus, json.loads(data))
    raw["languages"] = tuple(raw["languages"])
    raw["modes_ms"] = tuple(raw["modes_ms"])
    return EngineStatus(**raw)


def decode_engine_event(data: str | bytes) -> EngineEvent:
    raw = json.loads(data)
    raw["kind"] = EngineEventKind(raw["kind"])
    raw["words"] = tuple(raw.get("words", ()))
    return EngineEvent(**raw)


def decode_viewer_event(data: str | bytes) -> ViewerEvent:
    raw = json.loads(data)
    if raw.get("words") is not None:
        raw["words"] = tuple(raw["words"])
    return ViewerEvent(**raw)


PUT_AUDIO_LUA: Final = """
-- KEYS: audio stream, writer. ARGV: connection, kind, first sample, payload.
-- A socket that was taken over may still hold packets. Behind those of its successor they would
-- look like a gap, and what fills the gap like a replay: they are refused with 0. Without a writer
-- the session is over, or this server is a new one that must be told again: -1.
local writer = redis.call('GET', KEYS[2])
if not writer then return -1 end
if writer ~= ARGV[1] then return 0 end
if ARGV[4] == '' then return redis.call('XADD', KEYS[1], '*', 'k', ARGV[2], 's', ARGV[3]) end
return redis.call('XADD', KEYS[1], '*', 'k', ARGV[2], 's', ARGV[3], 'd', ARGV[4])
"""

PUBLISH_FINAL_LUA: Final = """
-- KEYS: session hash, events stream. ARGV: epoch, next_utterance, resume_sample, payload.
-- Only the owner of the session's current epoch may publish; another gets 0 and drops the stream.
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 0 end
if ARGV[4] ~= '' then redis.call('XADD', KEYS[2], '*', 'e', ARGV[4]) end
redis.call('HSET', KEYS[1], 'next_utterance', ARGV[2], 'resume_sample', ARGV[3])
return 1
"""

SET_CHOICE_LUA: Final = """
-- KEYS: session hash. ARGV: epoch, field (mode_ms or language), value.
-- Only the owner of the present epoch may; its successor begins with this value. 0 for another.
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
return 1
"""

RELEASE_LUA: Final = """
-- KEYS: session hash, events stream, sessions set. ARGV: epoch, session, payload, '1' to hand over.
-- Says the last word of an owner (`waiting` or `ended`; empty for a hand-over) and leaves the
-- session, which stays in the set only for a successor. 0 when the epoch is another's.
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 0 end
if ARGV[3] ~= '' then redis.call('XADD', KEYS[2], '*', 'e', ARGV[3]) end
redis.call('HSET', KEYS[1], 'owner', '')
if ARGV[4] ~= '1' then redis.call('SREM', KEYS[3], ARGV[2]) end
return 1
"""

CLAIM_LUA: Final = """
-- KEYS: session hash, sessions set.
-- ARGV: engine, session, expected owner or '*', mode_ms, language.
-- Raises the epoch and takes the session; returns {epoch, next_utterance, resume_sample}, or false
-- when somebody else was faster.
local owner = redis.call('HGET', KEYS[1], 'owner') or ''
if ARGV[3] ~= '*' and owner ~= ARGV[3] then return false end
local epoch = redis.call('HINCRBY', KEYS[1], 'epoch', 1)
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'mode_ms', ARGV[4], 'language', ARGV[5])
redis.call('SADD', KEYS[2], ARGV[2])
return {epoch, redis.call('HGET', KEYS[1], 'next_utterance') or '0',
        redis.call('HGET', KEYS[1], 'resume_sample') or '0'}
"""
