"""Many microphones and readers at once, from a few processes: the load of `manage.py caption`.

A process of its own for each SOCKETS_PER_PROCESS sockets, so that the generator's own queue does
not pass for the server's; what it took of the CPU is reported. Processes share the machine's
monotonic clock, by which every sending and arrival is timed. No Django: they start fast.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from asr_engine.audio import BYTES_PER_SAMPLE, SAMPLE_RATE
from transcription.runners.caption import LASTING, CaptionError, CaptionStream, PcmSource
from transcription.runners.caption_report import StreamReport, ViewerReport

SOCKETS_PER_PROCESS: Final = 150
START_UP_S: Final = 2.0
"""From the start of the processes to the first socket: all of them are there by then."""
VIEWER_SPREAD_S: Final = 0.01
CLOSING_S: Final = 90.0
"""How long readers wait for `closed` after the last audio."""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What every process is told. `pcm` is raw PCM16; `sessions` are to be captured, one for each
    stream, and made by the server where there are none."""

    url: str
    token: str
    pcm: Path
    language: str
    mode_ms: int
    packet_ms: int
    clients: int
    spread_s: float
    speed: float = 1.0
    sessions: tuple[str, ...] = ()
    viewers: int = 0
    captions_url: str = ""
    cookie: str = ""
    start_s: float = 0.0

    @property
    def processes(self) -> int:
        return -(-(self.clients + self.viewers) // SOCKETS_PER_PROCESS)

    @property
    def audio_s(self) -> float:
        return self.pcm.stat().st_size / BYTES_PER_SAMPLE / SAMPLE_RATE / self.speed


@dataclass(frozen=True, slots=True)
class LoadResult:
    """Reports in the order of the streams, and CPU seconds of the processes that made them."""

    streams: list[StreamReport]
    viewers: list[ViewerReport]
    cpu_s: float
    wall_s: float
    processes: int


def run_load(plan: LoadPlan) -> LoadResult:
    """Run all of `plan`, and wait for its end."""
    count = plan.processes
    started = time.monotonic()
    told = replace(plan, start_s=started + START_UP_S)
    with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn")) as pool:
        shares = list(pool.map(_run_share, [told] * count, range(count), [count] * count))
    streams: list[StreamReport] = [StreamReport()] * plan.clients
    for share, (reports, _, _) in enumerate(shares):
        streams[share::count] = reports
    return LoadResult(
        streams=streams,
        viewers=[viewer for _, viewers, _ in shares for viewer in viewers],
        cpu_s=round(sum(cpu_s for _, _, cpu_s in shares), 2),
        wall_s=round(time.monotonic() - started, 2),
        processes=count,
    )


def _run_share(
    plan: LoadPlan, share: int, shares: int
) -> tuple[list[StreamReport], list[ViewerReport], float]:
    """Every `shares`-th stream and reader, from number `share` on. The process serves no other."""
    with plan.pcm.open("rb") as file:
        streams, viewers = asyncio.run(
            _run_sockets(plan, PcmSource(file, is_live=False), share, shares)
        )
    used = resource.getrusage(resource.RUSAGE_SELF)
    return streams, viewers, used.ru_utime + used.ru_stime


async def _run_sockets(
    plan: LoadPlan, source: PcmSource, share: int, shares: int
) -> tuple[list[StreamReport], list[ViewerReport]]:
    streams = asyncio.gather(
        *(_run_stream(plan, source, number) for number in range(share, plan.clients, shares))
    )
    viewers = asyncio.gather(
        *(_run_viewer(plan, number) for number in range(share, plan.viewers, shares))
    )
    return list(await streams), list(await viewers)


async def _run_stream(plan: LoadPlan, source: PcmSource, number: int) -> StreamReport:
    """A refusal ends one stream, not the others."""
    stream = CaptionStream(
        plan.url,
        plan.token,
        language=plan.language,
        mode_ms=plan.mode_ms,
        packet_ms=plan.packet_ms,
        session=plan.sessions[number] if number < len(plan.sessions) else "",
        speed=plan.speed,
    )
    await _sleep_until(plan.start_s + plan.spread_s * number)
    try:
        await stream.run(source)
    except CaptionError as error:
        stream.report.problem = str(error)
    return stream.report


async def _run_viewer(plan: LoadPlan, number: int) -> ViewerReport:
    """Read the first session until it is closed."""
    report = ViewerReport()
    await _sleep_until(plan.start_s + VIEWER_SPREAD_S * number)
    end_s = plan.start_s + plan.audio_s + CLOSING_S
    try:
        async with (
            asyncio.timeout(max(0.0, end_s - time.monotonic())),
            connect(
                plan.captions_url,
                additional_headers={"Cookie": plan.cookie},
                max_size=None,
                max_queue=None,
                compression=None,
            ) as socket,
        ):
            async for message in socket:
                if _hear(report, json.loads(message), time.monotonic()):
                    return report
        report.problem = report.problem or "The socket was closed before the session was."
    except TimeoutError:
        report.problem = "The session was not closed in time."
    except (OSError, ConnectionClosed, InvalidHandshake) as error:
        report.problem = report.problem or f"The socket was lost ({type(error).__name__})."
    report.problem_code = report.problem_code or "lost"
    return report


def _hear(report: ViewerReport, event: dict[str, Any], now: float) -> bool:
    """Whether this was the last of the session."""
    match event["type"]:
        case "partial":
            report.heard.note_partial(event, now)
        case "final":
            report.heard.note_final(event, now)
        case "history":
            for stored in event["events"]:
                report.heard.keep(stored)
        case "error":
            report.problem, report.problem_code = event["reason"], event["code"]
    if event["type"] in LASTING:
        report.heard.keep(event)
    return bool(event["type"] == "closed")


async def _sleep_until(at_s: float) -> None:
    await asyncio.sleep(max(0.0, at_s - time.monotonic()))
