"""How others speak to engines: admission, latency modes, draining, status. No models.

The engines alone admit. A process that wants a session heard asks with `request_stream` before the
first packet, after a loss, and whenever the session may be waiting (see `protocol` for what its
hash holds then); where the session runs already the answer is the stream that it has.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from dataclasses import replace

import redis
from redis.asyncio import Redis

from asr_engine.errors import (
    AdmissionError,
    EngineError,
    NoEngineError,
    NoFreeSlotError,
    OverloadedError,
    UnsupportedLanguageError,
    UnsupportedModeError,
)
from asr_engine.protocol import (
    ADMISSION_TIMEOUT_S,
    COMMAND_FIELD,
    ENGINES_KEY,
    SESSIONS_KEY,
    Command,
    EngineStatus,
    Reply,
    commands_key,
    decode_reply,
    decode_status,
    encode,
    engine_key,
    reply_key,
    session_key,
)

MAX_COMMANDS = 1000
"""Commands kept for an engine; older ones are stale long before."""
COMMANDS_TTL_S = 3600
"""Nothing is left of an engine whose name never comes back."""

_REFUSALS: dict[str, type[EngineError]] = {
    error.code: error
    for error in (
        NoFreeSlotError,
        OverloadedError,
        UnsupportedLanguageError,
        UnsupportedModeError,
    )
}


async def request_stream(
    broker: Redis, *, session: str, language: str | None, mode_ms: int
) -> Reply:
    """Have `session` heard: the answer of the engine that took it (`is_admitted` is True).

    `mode_ms` 0 asks for the engine's default. Asks the engine that runs the session already, then
    those with free slots, each for up to ADMISSION_TIMEOUT_S. Raises NoFreeSlotError,
    OverloadedError or UnsupportedLanguageError as the last engine refused, NoEngineError when none
    runs or answers, RedisError.
    """
    statuses = await engine_statuses(broker)
    owner = _text(await broker.hget(session_key(session), "owner"))
    candidates = _candidates(statuses, owner.partition(":")[0], language)
    refusal: EngineError | None = None
    for status in candidates:
        command = Command("open", session, language=language, mode_ms=mode_ms)
        reply = await _ask(broker, status.engine, command)
        if reply is not None and reply.is_admitted:
            return reply
        if reply is not None:
            refusal = _REFUSALS.get(reply.code, AdmissionError)(reply.reason)
    if refusal is not None:
        raise refusal
    raise _why_nobody(statuses, candidates, language)


async def set_stream_mode(broker: Redis, *, session: str, mode_ms: int) -> Reply | None:
    """Change the latency mode of a session: the answer of the engine that runs it.

    None where the session waits: the mode is for whoever asks `request_stream` next. Raises
    UnsupportedModeError where its engine (for a session that waits, every engine) lacks the mode,
    NoEngineError when none answers or the session is just changing hands, RedisError.
    """
    owner = _text(await broker.hget(session_key(session), "owner"))
    if not owner:
        statuses = await _statuses_for_waiting(broker, session)
        if not any(mode_ms in status.modes_ms for status in statuses):
            raise UnsupportedModeError
        return None
    return await _change(broker, owner, Command("set_mode", session, mode_ms=mode_ms))


async def set_stream_language(broker: Redis, *, session: str, language: str | None) -> Reply | None:
    """Change the language of a session (None: detect it), from its next utterance on.

    Answers as `set_stream_mode` does. Raises UnsupportedLanguageError where its engine (for a
    session that waits, every engine) lacks the language, NoEngineError, RedisError.
    """
    owner = _text(await broker.hget(session_key(session), "owner"))
    if not owner:
        statuses = await _statuses_for_waiting(broker, session)
        if not any(_knows(status, language) for status in statuses):
            raise UnsupportedLanguageError
        return None
    return await _change(broker, owner, Command("set_language", session, language=language))


async def order_drain(broker: Redis, engine: str, *, is_draining: bool) -> None:
    """Have `engine` take no session any more and hand over those that it has, or serve again.

    Returns when it is told; its status says what came of it. Raises RedisError.
    """
    await _send(broker, engine, Command("drain" if is_draining else "undrain"))


async def move_stream(
    broker: Redis, *, session: str, owner: str, language: str | None, mode_ms: int
) -> bool:
    """Have another engine take `session` from `owner` (`name:incarnation`), which runs it.

    False where no other engine has room. Raises RedisError.
    """
    own_name = owner.rpartition(":")[0]
    others = [status for status in await engine_statuses(broker) if status.engine != own_name]
    command = Command("open", session, language=language, mode_ms=mode_ms, owner=owner)
    for status in _candidates(others, "", language):
        reply = await _ask(broker, status.engine, command)
        if reply is not None and reply.is_admitted:
            return True
    return False


async def _change(broker: Redis, owner: str, command: Command) -> Reply:
    reply = await _ask(broker, owner.partition(":")[0], command)
    if reply is None:
        raise NoEngineError
    if not reply.is_admitted:
        raise _REFUSALS.get(reply.code, NoEngineError)()
    return reply


async def _statuses_for_waiting(broker: Redis, session: str) -> list[EngineStatus]:
    """Raises NoEngineError where none runs, or the session does not wait but changes hands."""
    statuses = await engine_statuses(broker)
    if not statuses or await broker.sismember(SESSIONS_KEY, session):
        raise NoEngineError
    return statuses


async def engine_statuses(broker: Redis) -> list[EngineStatus]:
    """What each running engine said last, by name. Forgets engines that no longer beat."""
    names = sorted(_text(name) for name in await broker.smembers(ENGINES_KEY))
    if not names:
        return []
    beats = await broker.mget([engine_key(name) for name in names])
    silent = [name for name, beat in zip(names, beats, strict=True) if beat is None]
    if silent:
        await broker.srem(ENGINES_KEY, *silent)
    return [decode_status(beat) for beat in beats if beat is not None]


def engine_statuses_sync(broker: redis.Redis) -> list[EngineStatus]:
    """`engine_statuses` for code without an event loop; forgets nothing."""
    members: Iterable[bytes | str] = broker.smembers(ENGINES_KEY)
    names = sorted(_text(name) for name in members)
    if not names:
        return []
    beats: list[bytes | None] = broker.mget([engine_key(name) for name in names])  # type: ignore[assignment]
    return [decode_status(beat) for beat in beats if beat is not None]


def _candidates(
    statuses: list[EngineStatus], owner: str, language: str | None
) -> list[EngineStatus]:
    """The owner first, then who has most free slots."""
    able = [
        status
        for status in statuses
        if status.engine == owner
        or (not status.is_draining and status.free_slots > 0 and _knows(status, language))
    ]
    return sorted(able, key=lambda status: (status.engine != owner, -status.free_slots))


def _knows(status: EngineStatus, language: str | None) -> bool:
    return not language or not status.languages or language in status.languages


def _why_nobody(
    statuses: list[EngineStatus], asked: list[EngineStatus], language: str | None
) -> EngineError:
    running = [status for status in statuses if not status.is_draining]
    if asked or not running:
        return NoEngineError()
    if not any(_knows(status, language) for status in running):
        return UnsupportedLanguageError()
    return NoFreeSlotError()


async def _ask(broker: Redis, engine: str, command: Command) -> Reply | None:
    """The answer to `command`, or None after ADMISSION_TIMEOUT_S."""
    request = secrets.token_hex(16)
    await _send(broker, engine, replace(command, request=request, sent_at_s=time.time()))
    answer = await broker.blpop([reply_key(request)], timeout=ADMISSION_TIMEOUT_S)
    return None if answer is None else decode_reply(answer[1])


async def _send(broker: Redis, engine: str, command: Command) -> None:
    key = commands_key(engine)
    async with broker.pipeline(transaction=False) as pipe:
        pipe.xadd(key, {COMMAND_FIELD: encode(command)}, maxlen=MAX_COMMANDS)
        pipe.expire(key, COMMANDS_TTL_S)
        await pipe.execute()


def _text(value: bytes | str | None) -> str:
    if value is None:
        return ""
    return value.decode() if isinstance(value, bytes) else value
