"""kill -9 of each process under live streams: how long captions stop, and what is lost.

    python -m tests.load.failover [--streams 20] [--between 12] [--restarted NAME ...]
        [--standby NAME ...] [--page docs/benchmarks-failover.md] [--lines FILE]

A supervised server of its own with the scripted model, which reads its words out of the samples,
and streams in real time through real sockets. Two runs. *Restarted*: each process is killed in turn
and the supervisor starts it again. *By a standby*: a second engine and a second recorder run, the
supervisor is held, so that what is killed stays dead, and the other one takes over; an engine is
drained as well. After a run every word of every stream is looked for in what was stored, and every
recording must get its transcript.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from dotenv import dotenv_values
from redis.asyncio import Redis

from asr_engine import client
from asr_engine.backends import scripted
from asr_engine.protocol import EngineStatus
from tests.chaos.speaker import Speaker, Verdict, judge
from tests.chaos.storm import kill, make_token
from tests.e2e.conftest import ROOT, Server, make_server
from tests.load.failover_page import page
from tests.load.machine import load, machine

NOTHING: Final = "nothing"
RESTARTED: Final = (NOTHING, "engine", "recorder", "web", "broker", "audio", "jobs")
DRAIN: Final = "drain"
STANDBY: Final = (NOTHING, "engine", "recorder", DRAIN)
UTTERANCE_WORDS: Final = 16
UTTERANCE_S: Final = 0.1 * UTTERANCE_WORDS + 2 * 1.2
WARM_UP_S: Final = 6.0
RECOVERY_TIMEOUT_S: Final = 120.0
LOOK_EVERY_S: Final = 0.02
JOBS_LOOK_EVERY_S: Final = 0.5
CLOSE_TIMEOUT_S: Final = 300.0
SECOND_ENGINE: Final = "engine-2"
ROOMY: Final = {
    "TRANSCRIBE_MAX_SESSIONS": "1000",
    "TRANSCRIBE_MAX_SESSIONS_PER_PERSON": "1000",
}
"""One person speaks in all sessions here; the limits are tested elsewhere."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One failure under load: how long each stream waited for words spoken after it, and by how
    much its latest final came after the words."""

    what: str
    captions_s: tuple[float, ...]
    finals_s: tuple[float, ...]
    final_lags_s: tuple[float, ...]

    def figures(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "captions_s": _spread(self.captions_s),
            "finals_s": _spread(self.finals_s),
            "final_lags_s": _spread(self.final_lags_s),
        }


def _spread(values: tuple[float, ...]) -> dict[str, float]:
    return {"median": round(statistics.median(values), 2), "worst": round(max(values), 2)}


class Crowd:
    """Streams that speak at once, each with words of its own."""

    def __init__(self, server: Server, token: str, streams: int) -> None:
        words = scripted.WORD_COUNT // streams
        url = f"ws://localhost:{server.port}/ws/v1/stream"
        self._server = server
        self.speakers = [
            Speaker(
                url,
                token,
                first=index * words,
                words=words,
                utterance_words=UTTERANCE_WORDS,
            )
            for index in range(streams)
        ]
        self._speaking: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        """Until every stream is heard; their utterances end at different moments."""
        spread_s = UTTERANCE_S / len(self.speakers)
        for speaker in self.speakers:
            self._speaking.append(asyncio.create_task(speaker.speak()))
            await asyncio.sleep(spread_s)
        await self._until(lambda: all(speaker.captions for speaker in self.speakers))

    async def go_through(
        self, what: str, strike: Callable[[], Awaitable[None]], lasts_s: float
    ) -> Phase:
        """Strike, and wait until words that were spoken after it have come for every stream, and
        for `lasts_s` at least."""
        at_s = time.monotonic()
        spoken_ms = [speaker.spoken_ms for speaker in self.speakers]
        seen = [len(speaker.captions) for speaker in self.speakers]
        await strike()

        def waits(*, finals_only: bool) -> tuple[float, ...]:
            waited = []
            for speaker, position_ms, count in zip(self.speakers, spoken_ms, seen, strict=True):
                for caption in speaker.captions[count:]:
                    if caption.end_ms > position_ms and (caption.is_final or not finals_only):
                        waited.append(caption.at_s - at_s)
                        break
            return tuple(waited)

        await self._until(lambda: len(waits(finals_only=True)) == len(self.speakers))
        await asyncio.sleep(max(0.0, at_s + lasts_s - time.monotonic()))
        lags = [
            max(caption.lag_s for caption in speaker.captions[count:] if caption.is_final)
            for speaker, count in zip(self.speakers, seen, strict=True)
        ]
        return Phase(what, waits(finals_only=False), waits(finals_only=True), tuple(lags))

    async def end(self) -> list[Verdict]:
        """Let all finish what they say and be transcribed again, and judge what is stored."""
        for speaker in self.speakers:
            speaker.speech.is_over = True
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await asyncio.gather(*self._speaking)
            while transcribed(self._server) < len(self.speakers):  # noqa: ASYNC110 -- other processes
                await asyncio.sleep(JOBS_LOOK_EVERY_S)
        return [judge(self._server, speaker) for speaker in self.speakers]

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(RECOVERY_TIMEOUT_S):
            while not holds():
                failed = [task for task in self._speaking if task.done() and task.exception()]
                if failed:
                    failed[0].result()
                await asyncio.sleep(LOOK_EVERY_S)


def transcribed(server: Server) -> int:
    """Recordings whose job is done."""
    address = f"file:{server.data_dir / 'database.sqlite3'}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=20)) as database:
        found = database.execute("SELECT count(*) FROM transcription_job WHERE state = 'done'")
        return int(found.fetchone()[0])


async def run_restarted(
    server: Server, token: str, streams: int, names: list[str], between_s: float
) -> dict[str, Any]:
    crowd = Crowd(server, token, streams)
    await crowd.begin()
    await asyncio.sleep(WARM_UP_S)
    phases = [
        await crowd.go_through(name, partial(strike, server, name), between_s) for name in names
    ]
    return report("restarted", phases, await crowd.end())


async def run_standby(
    server: Server, token: str, streams: int, names: list[str], between_s: float
) -> dict[str, Any]:
    crowd = Crowd(server, token, streams)
    await crowd.begin()
    with second_processes(server):
        await wait_for_engine(server, lambda status: not status.is_draining)
        await asyncio.sleep(WARM_UP_S)
        phases = []
        for name in names:
            with nullcontext() if name in {NOTHING, DRAIN} else supervisor_held(server):
                phase = await crowd.go_through(name, partial(strike, server, name), between_s)
            phases.append(phase)
        return report("standby", phases, await crowd.end())


@contextmanager
def second_processes(server: Server) -> Iterator[None]:
    """A second engine and a second recorder beside those that the supervisor runs."""
    settings = dotenv_values(server.data_dir / "settings.env")
    environment = server.environment | {
        "ASR_NAME": SECOND_ENGINE,
        "ASR_BROKER_URL": settings["TRANSCRIBE_BROKER_URL"] or "",
        "ASR_AUDIO_URL": settings["TRANSCRIBE_AUDIO_URL"] or "",
    }
    with server.log_path.open("ab") as log:
        processes = [
            subprocess.Popen(
                [sys.executable, *arguments], cwd=ROOT, env=environment, stdout=log, stderr=log
            )
            for arguments in (["-m", "asr_engine.worker"], ["manage.py", "record_live"])
        ]
        try:
            yield
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(timeout=30)


@contextmanager
def supervisor_held(server: Server) -> Iterator[None]:
    """While it is stopped it starts nothing again."""
    assert server.process is not None
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.process.pid, signal.SIGCONT)


async def strike(server: Server, name: str) -> None:
    """kill -9 a process; or empty the engine that has the streams, the second one by now."""
    if name == DRAIN:
        async with broker_of(server) as broker:
            await client.order_drain(broker, SECOND_ENGINE, is_draining=True)
        await wait_for_engine(server, lambda status: status.is_draining and not status.sessions)
    elif name != NOTHING:
        await kill(server, name)


async def wait_for_engine(server: Server, holds: Callable[[EngineStatus], bool]) -> None:
    """Until the second engine says of itself what is wanted."""
    async with broker_of(server) as broker, asyncio.timeout(RECOVERY_TIMEOUT_S):
        while not any(  # noqa: ASYNC110 -- another process
            status.engine == SECOND_ENGINE and holds(status)
            for status in await client.engine_statuses(broker)
        ):
            await asyncio.sleep(LOOK_EVERY_S)


def broker_of(server: Server) -> Redis:
    settings = dotenv_values(server.data_dir / "settings.env")
    return Redis.from_url(settings["TRANSCRIBE_BROKER_URL"] or "")


def report(kind: str, phases: list[Phase], verdicts: list[Verdict]) -> dict[str, Any]:
    """Figures of a run, JSON-able."""
    return {
        "kind": kind,
        "streams": len(verdicts),
        "phases": [phase.figures() for phase in phases],
        "lost_words": sum(len(verdict.lost) for verdict in verdicts),
        "doubled_words": sum(len(verdict.doubled) for verdict in verdicts),
        "out_of_order": sum(not verdict.is_in_order for verdict in verdicts),
        "wrongly_shown": sum(verdict.wrongly_shown for verdict in verdicts),
        "changed_finals": sum(verdict.changed_finals for verdict in verdicts),
        "gaps": sum(len(verdict.gaps_ms) for verdict in verdicts),
        "incomplete_files": sum(not verdict.is_audio_whole for verdict in verdicts),
    }


@contextmanager
def running_server(streams: int) -> Iterator[Server]:
    server = make_server(ASR_SLOTS=str(streams), **ROOMY)
    try:
        server.start()
        server.wait_ready()
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.data_dir, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.load.failover", description=__doc__)
    parser.add_argument("--streams", type=int, default=20)
    parser.add_argument("--between", type=float, default=12.0, help="seconds for each failure")
    parser.add_argument("--restarted", nargs="*", default=RESTARTED, choices=RESTARTED)
    parser.add_argument("--standby", nargs="*", default=STANDBY, choices=STANDBY)
    parser.add_argument("--page", type=Path, help="write the figures here as Markdown")
    parser.add_argument("--lines", type=Path, help="append the JSON lines here as well")
    arguments = parser.parse_args()
    before, runs = load(), []
    for run, names in ((run_restarted, arguments.restarted), (run_standby, arguments.standby)):
        if not names:
            continue
        with running_server(arguments.streams) as server:
            figures = asyncio.run(
                run(server, make_token(server), arguments.streams, list(names), arguments.between)
            )
        runs.append(figures)
        line = json.dumps(figures) + "\n"
        sys.stdout.write(line)
        sys.stdout.flush()
        if arguments.lines:
            with arguments.lines.open("a") as lines:
                lines.write(line)
    if arguments.page:
        arguments.page.write_text(page(runs, machine=machine(), loads=(before, load())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
