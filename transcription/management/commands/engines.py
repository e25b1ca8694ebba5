"""`manage.py engines`: what runs, and taking an engine out of service without losing a word."""

from __future__ import annotations

import asyncio
import time
from argparse import ArgumentParser
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from asr_engine import client
from asr_engine.protocol import EngineStatus
from webapp.config import site_settings

ANSWER_TIMEOUT_S: Final = 5.0
"""An engine tells its state once a second."""
LOOK_EVERY_S: Final = 0.2
PATIENCE_S: Final = 60
"""An utterance is at most 30 s long: sessions that can move have moved after that."""


class Command(BaseCommand):
    help = "List the engines; drain one before it is stopped or upgraded, or let it serve again."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION")
        actions.add_parser("list", help="the running engines (the default)")
        draining = actions.add_parser(
            "drain", help="move its sessions to other engines, and take no new ones"
        )
        draining.add_argument("name", metavar="NAME")
        draining.add_argument(
            "--wait",
            type=int,
            default=PATIENCE_S,
            metavar="SECONDS",
            help=f"how long to wait until it is empty ({PATIENCE_S})",
        )
        serving = actions.add_parser("undrain", help="let it take sessions again")
        serving.add_argument("name", metavar="NAME")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            asyncio.run(self._handle(options))
        except RedisError as error:
            raise CommandError("The broker does not answer: is the server running?") from error

    async def _handle(self, options: dict[str, Any]) -> None:
        async with Redis.from_url(site_settings().broker_url, socket_timeout=30) as broker:
            match options["action"]:
                case "drain":
                    await self._drain(broker, options["name"], options["wait"])
                case "undrain":
                    await self._order(broker, options["name"], is_draining=False)
                    self.stdout.write(f"{options['name']} takes sessions again.")
                case _:
                    self._list(await client.engine_statuses(broker))

    def _list(self, statuses: list[EngineStatus]) -> None:
        if not statuses:
            self.stdout.write("No engine is running.")
            return
        rows = [("ENGINE", "MODEL", "SESSIONS", "FREE SLOTS", "LAG", "STATE")]
        rows += [
            (
                status.engine,
                status.model,
                str(status.sessions),
                f"{status.free_slots} of {status.slots}",
                f"{status.lag_ms} ms",
                state_of(status),
            )
            for status in statuses
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        for row in rows:
            cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
            self.stdout.write("  ".join(cells).rstrip())

    async def _drain(self, broker: Redis, name: str, wait_s: int) -> None:
        await self._order(broker, name, is_draining=True)
        given_up_at_s = time.monotonic() + wait_s
        said = ""
        while True:
            statuses = await client.engine_statuses(broker)
            drained = _named(statuses, name)
            if drained is None or not drained.sessions:
                self.stdout.write(f"{name} is empty: it may be stopped.")
                return
            sentence = progress(drained, statuses)
            if sentence != said:
                self.stdout.write(sentence)
                said = sentence
            if time.monotonic() > given_up_at_s:
                raise CommandError(
                    f"{name} still has {_sessions(drained.sessions)}; it goes on draining."
                )
            await asyncio.sleep(LOOK_EVERY_S)

    async def _order(self, broker: Redis, name: str, *, is_draining: bool) -> None:
        """Returns once the engine says that it obeys."""
        statuses = await client.engine_statuses(broker)
        if _named(statuses, name) is None:
            known = ", ".join(status.engine for status in statuses) or "none"
            raise CommandError(f"No engine {name} is running. Running: {known}.")
        await client.order_drain(broker, name, is_draining=is_draining)
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                while not await _obeys(broker, name, is_draining=is_draining):  # noqa: ASYNC110 -- another process
                    await asyncio.sleep(LOOK_EVERY_S)
        except TimeoutError:
            raise CommandError(f"{name} does not answer.") from None


def state_of(status: EngineStatus) -> str:
    """One word or two for the table."""
    if not status.is_draining:
        return "serving"
    return "draining" if status.sessions else "empty"


def progress(drained: EngineStatus, statuses: list[EngineStatus]) -> str:
    """Where the sessions of an engine that drains are going."""
    have_room = [
        status.engine for status in statuses if not status.is_draining and status.free_slots
    ]
    if not have_room:
        return (
            f"No other engine has room: {drained.engine} keeps "
            f"{_sessions(drained.sessions)}, and captions go on there."
        )
    return f"{_sessions(drained.sessions)} left, moving to {', '.join(have_room)}."


async def _obeys(broker: Redis, name: str, *, is_draining: bool) -> bool:
    status = _named(await client.engine_statuses(broker), name)
    return status is not None and status.is_draining == is_draining


def _named(statuses: list[EngineStatus], name: str) -> EngineStatus | None:
    return next((status for status in statuses if status.engine == name), None)


def _sessions(count: int) -> str:
    return "1 session" if count == 1 else f"{count} sessions"
