"""Which web processes there are: each says its name and its open sockets, for health and metrics.

    broker: webs    hash    {name: "<open sockets> <epoch seconds>"}

Several share a port (`TRANSCRIBE_WEB_PROCESSES`), so a monitor that asks gets an answer from one of
them: what it says of the others it has from here.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import redis
from redis.exceptions import RedisError

WEBS_KEY: Final = "webs"
ONLY_NAME: Final = "web"
BEAT_S: Final = 2.0
FRESH_S: Final = 8.0
"""A process that has not beaten for so long is silent."""
FORGET_S: Final = 60.0
"""One that has been silent for so long was taken out of service."""


@dataclass(frozen=True, slots=True)
class WebProcess:
    """What one said last."""

    name: str
    sockets: int
    is_silent: bool


def start_beating(name: str, broker_url: str, open_sockets: Callable[[], int]) -> None:
    """Say this process's name and how many sockets it has from now on, in a thread."""
    threading.Thread(
        target=_beat_for_ever, args=(name, broker_url, open_sockets), name="web-beats", daemon=True
    ).start()


def _beat_for_ever(name: str, broker_url: str, open_sockets: Callable[[], int]) -> None:
    broker = redis.Redis.from_url(broker_url, socket_timeout=30)
    while True:
        with contextlib.suppress(RedisError):  # the broker restarts: the next beat tells
            write_web(broker, name, sockets=open_sockets(), now_s=time.time())
        time.sleep(BEAT_S)


def write_web(broker: redis.Redis, name: str, *, sockets: int, now_s: float) -> None:
    broker.hset(WEBS_KEY, name, f"{sockets} {now_s:.0f}")


def web_processes(broker: redis.Redis, *, now_s: float) -> list[WebProcess]:
    """By name; forgets those that are gone. Raises redis.exceptions.RedisError."""
    found = []
    beats: dict[bytes, bytes] = broker.hgetall(WEBS_KEY)  # type: ignore[assignment]  # bytes, by default
    for name, value in sorted(beats.items()):
        sockets, _, beaten_at = value.decode().partition(" ")
        age_s = now_s - float(beaten_at)
        if age_s > FORGET_S:
            broker.hdel(WEBS_KEY, name)
        else:
            found.append(WebProcess(name.decode(), int(sockets), age_s > FRESH_S))
    return found
