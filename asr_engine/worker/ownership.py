"""Who runs which session: claims, fenced publishing, release, and finding orphans.

All state is in the broker; every write is fenced by the session's epoch. Raises RedisError
throughout: the caller decides how long to try.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from asr_engine.protocol import (
    CLAIM_LUA,
    EVENTS_KEY,
    PUBLISH_FINAL_LUA,
    RELEASE_LUA,
    SESSIONS_KEY,
    SET_CHOICE_LUA,
    EngineEvent,
    encode,
    engine_key,
    session_key,
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A session taken: its epoch, and where its audio and its finals go on."""

    session: str
    epoch: int
    next_utterance: int
    resume_sample: int


@dataclass(frozen=True, slots=True)
class ListedSession:
    """A session of `live:sessions` as its hash describes it."""

    session: str
    owner: str
    mode_ms: int
    language: str


class Ownership:
    """Claims in the name of one engine process, `name:incarnation`."""

    def __init__(self, broker: Redis, *, name: str, incarnation: str) -> None:
        self._broker = broker
        self._name = name
        self.owner = f"{name}:{incarnation}"

    async def claim(
        self, session: str, *, expected: str, mode_ms: int, language: str
    ) -> Claim | None:
        """Take `session` from `expected` ('*': whoever has it); None when another was faster."""
        answer = await self._broker.eval(
            CLAIM_LUA,
            2,
            session_key(session),
            SESSIONS_KEY,
            self.owner,
            session,
            expected,
            str(mode_ms),
            language,
        )
        if not answer:
            return None
        epoch, next_utterance, resume_sample = (int(item) for item in answer)
        return Claim(session, epoch, next_utterance, resume_sample)

    async def publish(
        self,
        session: str,
        *,
        epoch: int,
        next_utterance: int,
        resume_sample: int,
        event: EngineEvent | None,
    ) -> bool:
        """Add `event`, if any, and move the place to resume. False when no longer the owner."""
        answer = await self._broker.eval(
            PUBLISH_FINAL_LUA,
            2,
            session_key(session),
            EVENTS_KEY,
            str(epoch),
            str(next_utterance),
            str(resume_sample),
            encode(event) if event else "",
        )
        return bool(answer)

    async def set_mode(self, session: str, *, epoch: int, mode_ms: int) -> bool:
        """Leave word of the latency mode for a successor. False when no longer the owner."""
        return await self._set_choice(session, epoch, "mode_ms", str(mode_ms))

    async def set_language(self, session: str, *, epoch: int, language: str) -> bool:
        """Leave word of the language ("": detect it). False when no longer the owner."""
        return await self._set_choice(session, epoch, "language", language)

    async def _set_choice(self, session: str, epoch: int, name: str, value: str) -> bool:
        answer = await self._broker.eval(
            SET_CHOICE_LUA, 1, session_key(session), str(epoch), name, value
        )
        return bool(answer)

    async def release(
        self, session: str, *, epoch: int, event: EngineEvent | None, is_handed_over: bool
    ) -> bool:
        """Leave `session`, with a last event or to a successor. False when not the owner."""
        answer = await self._broker.eval(
            RELEASE_LUA,
            3,
            session_key(session),
            EVENTS_KEY,
            SESSIONS_KEY,
            str(epoch),
            session,
            encode(event) if event else "",
            "1" if is_handed_over else "0",
        )
        return bool(answer)

    async def listed(self) -> list[ListedSession]:
        """The sessions that some engine should be running."""
        names = await self._listed_names()
        if not names:
            return []
        pipe = self._broker.pipeline(transaction=False)
        for name in names:
            pipe.hmget(session_key(name), ["owner", "mode_ms", "language"])
        return [
            ListedSession(
                session=name,
                owner=(owner or b"").decode(),
                mode_ms=int(mode_ms or 0),
                language=(language or b"").decode(),
            )
            for name, (owner, mode_ms, language) in zip(names, await pipe.execute(), strict=True)
        ]

    async def _listed_names(self) -> list[str]:
        names: Any = await self._broker.smembers(SESSIONS_KEY)
        return sorted(name.decode() for name in names)

    async def orphans(
        self, listed: Collection[ListedSession], running: Collection[str]
    ) -> list[ListedSession]:
        """Those of `listed` that nobody runs.

        An earlier incarnation of this engine's name is dead at once (two engines must not share a
        name); another engine is when its heartbeat has expired.
        """
        others = {self._engine_of(item.owner) for item in listed} - {"", self._name}
        alive = {name for name in others if await self._broker.exists(engine_key(name))}
        return [
            item
            for item in listed
            if item.session not in running and self._engine_of(item.owner) not in alive
        ]

    @staticmethod
    def _engine_of(owner: str) -> str:
        return owner.rpartition(":")[0]
