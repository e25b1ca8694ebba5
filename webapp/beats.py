"""Signs of life of the Celery processes, written by a thread and read by `/readyz`.

    broker: workers    hash    {node name: "<queue> <epoch seconds>"}

A beat says that the process lives, not that its work goes on: leases of jobs say that.
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from typing import Any, Final

import redis
from celery.signals import beat_init, worker_ready
from redis.exceptions import RedisError

WORKERS_KEY: Final = "workers"
BEAT_S: Final = 2.0
FRESH_S: Final = 8.0
"""A process that has not beaten for so long counts as gone."""
FORGET_S: Final = 24 * 3600.0
SCHEDULE: Final = "schedule"
"""What stands in place of a queue for the scheduler (`celery beat`)."""


@worker_ready.connect  # type: ignore[untyped-decorator]  # celery has no types
def _worker_is_ready(sender: Any, **_: Any) -> None:
    for queue in sender.app.amqp.queues.consume_from:
        _start(sender.app.conf.broker_url, f"{sender.hostname}/{queue}", queue)


@beat_init.connect  # type: ignore[untyped-decorator]  # celery has no types
def _scheduler_is_ready(sender: Any, **_: Any) -> None:
    _start(sender.app.conf.broker_url, SCHEDULE, SCHEDULE)


def _start(broker_url: str, name: str, queue: str) -> None:
    threading.Thread(
        target=_beat_for_ever, args=(broker_url, name, queue), name="beats", daemon=True
    ).start()


def _beat_for_ever(broker_url: str, name: str, queue: str) -> None:
    broker = redis.Redis.from_url(broker_url, socket_timeout=30)
    while True:
        with contextlib.suppress(RedisError):  # the broker restarts: the next beat tells
            write_beat(broker, name, queue, now_s=time.time())
        time.sleep(BEAT_S)


def write_beat(broker: redis.Redis, name: str, queue: str, *, now_s: float) -> None:
    broker.hset(WORKERS_KEY, name, f"{queue} {now_s:.0f}")


@dataclass(frozen=True, slots=True)
class Worker:
    """What one said last. `queue` is SCHEDULE for the scheduler."""

    name: str
    queue: str
    is_silent: bool


def workers(broker: redis.Redis, *, now_s: float) -> list[Worker]:
    """By name; forgets the long dead. Raises redis.exceptions.RedisError."""
    found = []
    beats: dict[bytes, bytes] = broker.hgetall(WORKERS_KEY)  # type: ignore[assignment]  # bytes, by default
    for name, value in sorted(beats.items()):
        queue, _, beaten_at = value.decode().partition(" ")
        age_s = now_s - float(beaten_at)
        if age_s > FORGET_S:
            broker.hdel(WORKERS_KEY, name)
        else:
            found.append(Worker(name.decode(), queue, age_s >= FRESH_S))
    return found


def queues_served(broker: redis.Redis, *, now_s: float) -> set[str]:
    """Queues with a worker that beat lately. Raises redis.exceptions.RedisError."""
    return {worker.queue for worker in workers(broker, now_s=now_s) if not worker.is_silent}
