"""What the server is doing at this moment, as its parts say it themselves, for administrators.

Everything here is read from the broker, the model store and the disk; nothing is changed but, by
`order_engine`, whether an engine takes live sessions.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from asgiref.sync import async_to_sync
from django.conf import settings
from redis.asyncio import Redis
from redis.exceptions import RedisError

from asr_engine.client import engine_statuses_sync, order_drain
from asr_engine.config import engine_settings
from asr_engine.protocol import RECORDER_LEADER_KEY, EngineStatus, session_key
from asr_engine.store import ModelState, ModelStatus, ModelStore
from transcription.errors import NotFoundError, TryLaterError
from transcription.models import LiveSession
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act, User
from webapp.beats import Worker, workers
from webapp.health import CONNECT_TIMEOUT_S, connect
from webapp.web_processes import WebProcess, web_processes

FULL_ENOUGH: Final = 0.9
"""Share of the disk above which somebody should look."""
LEAST_FREE_BYTES: Final = 5 * 1024**3


@dataclass(frozen=True, slots=True)
class Parts:
    """What the processes said last. All is empty while the broker does not answer."""

    has_broker: bool = True
    engines: tuple[EngineStatus, ...] = ()
    workers: tuple[Worker, ...] = ()
    webs: tuple[WebProcess, ...] = ()
    has_recorder: bool = False


@dataclass(frozen=True, slots=True)
class Disk:
    """The file system that recordings lie on. What only root may use counts as used."""

    total_bytes: int
    free_bytes: int

    @property
    def used_share(self) -> float:
        return 1 - self.free_bytes / self.total_bytes if self.total_bytes else 1.0

    @property
    def is_scarce(self) -> bool:
        return self.used_share > FULL_ENOUGH or self.free_bytes < LEAST_FREE_BYTES


def look_at_parts() -> Parts:
    """Asks the broker, which answers soon or is away."""
    now_s = time.time()
    try:
        with connect(settings.SITE.broker_url) as broker:
            return Parts(
                engines=tuple(engine_statuses_sync(broker)),
                workers=tuple(workers(broker, now_s=now_s)),
                webs=tuple(web_processes(broker, now_s=now_s)),
                has_recorder=bool(broker.exists(RECORDER_LEADER_KEY)),
            )
    except RedisError:
        return Parts(has_broker=False)


def engines_of(sessions: Iterable[LiveSession]) -> dict[str, str]:
    """Which engine hears a session, by its id; without those that none hears."""
    ids = [str(session.id) for session in sessions]
    try:
        with connect(settings.SITE.broker_url) as broker:
            pipe = broker.pipeline(transaction=False)
            for session in ids:
                pipe.hget(session_key(session), "owner")
            owners = pipe.execute()
    except RedisError:
        return {}
    named = ((owner or b"").decode().rpartition(":")[0] for owner in owners)
    return {session: name for session, name in zip(ids, named, strict=True) if name}


def order_engine(*, name: str, is_draining: bool, ordered_by: User) -> None:
    """Have an engine hand over its sessions and take no more, or serve again.

    It obeys within about a second. Raises NotFoundError for one that does not run, TryLaterError
    while the broker is away.
    """
    parts = look_at_parts()
    if not parts.has_broker:
        raise TryLaterError("The broker does not answer. Nothing was changed.")
    if name not in {status.engine for status in parts.engines}:
        raise NotFoundError("No engine of this name runs.")
    try:
        async_to_sync(_order)(name, is_draining=is_draining)
    except RedisError:
        raise TryLaterError("The broker does not answer. Nothing was changed.") from None
    detail = {"engine": name, "order": "drain" if is_draining else "serve again"}
    record_act(act=Act.ENGINE_ORDERED, actor=ordered_by, detail=detail)


def models_of_store() -> list[tuple[ModelStatus, bool]]:
    """Every known model, and whether this configuration loads it; those that it does first.

    The store is this machine's: an engine elsewhere has its own.
    """
    site = engine_settings()
    needed = site.models_needed()
    statuses = ModelStore(site.model_dir).status()
    marked = [(status, status.entry.name in needed) for status in statuses]
    return sorted(marked, key=lambda pair: not pair[1])


def missing_models() -> list[str]:
    """Names of models that this configuration loads and cannot."""
    site = engine_settings()
    states = {s.entry.name: s.state for s in ModelStore(site.model_dir).status()}
    needed = sorted(site.models_needed())
    return [name for name in needed if states.get(name) != ModelState.INSTALLED]


def look_at_disk() -> Disk:
    root = Path(settings.MEDIA_ROOT)
    root.mkdir(parents=True, exist_ok=True)
    usage = shutil.disk_usage(root)
    return Disk(total_bytes=usage.total, free_bytes=usage.free)


async def _order(name: str, *, is_draining: bool) -> None:
    async with Redis.from_url(settings.SITE.broker_url, socket_timeout=CONNECT_TIMEOUT_S) as broker:
        await order_drain(broker, name, is_draining=is_draining)
