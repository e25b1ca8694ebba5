"""Kills and network failures at random moments of a live session, by a seed.

    python -m tests.chaos.storm --seeds 20 [--first 1] [--seconds 60]

Each seed is one session on one server: every process that a live session needs is killed (-9) at
least once while somebody speaks, twice the network fails, and blows may fall together or while the
server is still getting up from the last one. Prints a JSON line for each seed; ends with 1 where a
word was lost, doubled or out of order.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import sys
import time
from dataclasses import asdict, dataclass
from typing import Final

from tests.chaos.network import Network, network_to
from tests.chaos.speaker import Speaker, Verdict, judge
from tests.e2e.conftest import Server, make_server

PROCESSES: Final = ("engine", "recorder", "web", "broker", "audio")
NETWORK_FAILURES: Final = ("cut", "stall")
SPEED: Final = 2.0
"""Times real time. A session that began just now takes half a minute more than it is old."""
WORDS_PER_SECOND: Final = 2.5
"""Eight words in 0.8 s, between two pauses of 1.2 s."""
RESTART_TIMEOUT_S: Final = 30.0
CLOSE_TIMEOUT_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Blow:
    """Something that fails, `at_s` after the session began; the network for `lasts_s`."""

    at_s: float
    what: str
    lasts_s: float = 0.0


def plan(seed: int, seconds: float) -> list[Blow]:
    """The blows of a seed within `seconds`, in order."""
    chance = random.Random(seed)  # noqa: S311 -- a reproducible storm, no secret
    blows = [
        Blow(chance.uniform(0.5, seconds - 0.5), process)
        for process in (*PROCESSES, chance.choice(PROCESSES))
    ]
    blows += [
        Blow(chance.uniform(0.5, seconds - 0.5), failure, chance.uniform(0.2, 3.0))
        for failure in NETWORK_FAILURES
    ]
    return sorted(blows, key=lambda blow: blow.at_s)


async def ride_out(server: Server, token: str, seed: int, seconds: float) -> Verdict:
    """Speak for `seconds` through the storm of `seed`, end the session, and judge it."""
    words = round(seconds * SPEED * WORDS_PER_SECOND)
    async with network_to(server.port) as network:
        url = f"ws://localhost:{network.port}/ws/v1/stream"
        speaker = Speaker(url, token, first=1000 * (seed % 60), words=words, speed=SPEED)
        speaking = asyncio.create_task(speaker.speak())
        try:
            while not speaker.spoken_ms and not speaking.done():  # noqa: ASYNC110 -- no one tells
                await asyncio.sleep(0.02)
            await _strike(server, network, plan(seed, seconds))
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await speaking
                await _wait_for_recording(server, speaker)
        finally:
            speaking.cancel()
            await asyncio.gather(speaking, return_exceptions=True)
    return judge(server, speaker)


async def _strike(server: Server, network: Network, blows: list[Blow]) -> None:
    started = time.monotonic()
    failures: list[asyncio.Task[None]] = []
    for blow in blows:
        await asyncio.sleep(max(0.0, started + blow.at_s - time.monotonic()))
        if blow.what == "cut":
            failures.append(asyncio.create_task(network.cut(blow.lasts_s)))
        elif blow.what == "stall":
            failures.append(asyncio.create_task(network.stall(blow.lasts_s)))
        else:
            await kill(server, blow.what)
    await asyncio.gather(*failures)


async def kill(server: Server, process: str) -> None:
    """kill -9; one that is down already is killed when it is up again."""
    async with asyncio.timeout(RESTART_TIMEOUT_S):
        while server.process_id(process) is None:  # noqa: ASYNC110 -- another process
            await asyncio.sleep(0.02)
    server.kill(process)


async def _wait_for_recording(server: Server, speaker: Speaker) -> None:
    """`closed` may have been missed, where its socket was killed after `stop`."""
    path = server.data_dir / "media" / "recordings" / speaker.session / "source.bin"
    while not path.exists():  # noqa: ASYNC110 -- another process
        await asyncio.sleep(0.1)


def make_token(server: Server) -> str:
    return server.manage("createtoken", server.email).strip()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.storm", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each storm")
    arguments = parser.parse_args()
    server = make_server()
    failed = 0
    try:
        server.start()
        server.wait_ready()
        token = make_token(server)
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            started = time.monotonic()
            verdict = asyncio.run(ride_out(server, token, seed, arguments.seconds))
            failed += not verdict.is_well
            line = {"seed": seed, "is_well": verdict.is_well, **asdict(verdict)}
            line["seconds"] = round(time.monotonic() - started, 1)
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
    finally:
        server.stop()
        if failed:
            sys.stderr.write(f"The log is kept: {server.log_path}\n")
        else:
            shutil.rmtree(server.data_dir, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
