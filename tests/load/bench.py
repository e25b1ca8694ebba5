"""`make bench`: measures this machine with the embedded models and writes docs/benchmarks.md.

    python -m tests.load.bench [--audio FILE] [--streams 1 2 4] [--rounds 3]

Batch: our draft beside bare faster-whisper, same model, audio and threads, turn about. Live: a
supervised server of its own that hears 1, 2 and 4 microphones at once. Absolute times belong to the
machine and to what else it did: both are named on the page, and the ratios are what to compare.
Two microphones without and with the second pass over what they have said, and without and with a
half-hour recording being transcribed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from asr_engine.audio import SAMPLE_RATE
from asr_engine.batch.decode import decode_audio
from asr_engine.config import engine_settings
from tests.e2e.conftest import ROOT, Server, make_server
from tests.fakes.tool import Tool
from tests.fakes.waiting import wait_until
from tests.load.machine import load, machine

PAGE = ROOT / "docs" / "benchmarks.md"
SAMPLE = ROOT / "static" / "audio" / "sample.ogg"
REPEATS = 3
"""The sample is half a minute: so often it is heard in one stream."""
BESIDE_STREAMS = 2
BESIDE_REPEATS = 6
UPLOAD_S = 1800


def repeat(source: Path, target: Path, times: int) -> Path:
    """Write `source` `times` over as a 16 kHz WAV."""
    samples = np.concatenate(list(decode_audio(source)))
    soundfile.write(target, np.tile(samples, times), SAMPLE_RATE, subtype="PCM_16")
    return target


def measure_batch(audio: Path, rounds: int) -> dict[str, Any]:
    output = subprocess.run(
        [sys.executable, "-m", "tests.load.bench_batch", str(audio), "--rounds", str(rounds)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    report: dict[str, Any] = json.loads(output)
    return report


def cpu_seconds(server: Server, name: str) -> float:
    """CPU time that a process of the server has used."""
    fields = Path(f"/proc/{server.process_id(name)}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_live(audio: Path, streams: list[int]) -> list[dict[str, Any]]:
    server = make_server(
        ASR_LIVE_BACKEND="whisper", ASR_BATCH_BACKEND="scripted", TRANSCRIBE_LIVE_REFINE="off"
    )
    reports = []
    try:
        server.start()
        server.wait_ready()
        for count in streams:
            before = cpu_seconds(server, "engine")
            report = caption(server, audio, count)
            spent_s = cpu_seconds(server, "engine") - before
            report["cores_a_stream"] = spent_s / report["audio_s"] / count
            reports.append(report)
    finally:
        server.stop()
        shutil.rmtree(server.data_dir, ignore_errors=True)
    return reports


def caption(server: Server, audio: Path, streams: int) -> dict[str, Any]:
    output = server.manage(
        "caption", str(audio), "--clients", str(streams), "--language", "en", "--report=json"
    )
    report: dict[str, Any] = json.loads(output)
    return report


def measure_refined(audio: Path, folder: Path) -> dict[str, dict[str, Any]]:
    """The same live streams without the second pass and with it, each on a server of its own."""
    live = repeat(audio, folder / "refined.wav", BESIDE_REPEATS)
    reports = {}
    for choice in ("off", "auto"):
        server = make_server(
            ASR_LIVE_BACKEND="whisper",
            ASR_BATCH_BACKEND="whisper",
            TRANSCRIBE_LIVE_REFINE=choice,
        )
        try:
            server.start()
            server.wait_ready()
            caption(server, audio, BESIDE_STREAMS)  # the models are loaded, the caches warm
            reports[choice] = caption(server, live, BESIDE_STREAMS)
        finally:
            server.stop()
            shutil.rmtree(server.data_dir, ignore_errors=True)
    return reports


def measure_beside_upload(audio: Path, folder: Path) -> dict[str, Any]:
    """The same live streams without an upload and while a half-hour one is transcribed."""
    live = repeat(audio, folder / "live.wav", BESIDE_REPEATS)
    seconds = soundfile.info(str(live)).duration / BESIDE_REPEATS
    talk = repeat(audio, folder / "talk.wav", round(UPLOAD_S / seconds))
    server = make_server(ASR_LIVE_BACKEND="whisper", ASR_BATCH_BACKEND="whisper")
    try:
        server.start()
        server.wait_ready()
        tool = Tool(server.base_url, server.manage("createtoken", server.email).strip())
        caption(server, live, BESIDE_STREAMS)  # the models are loaded, the caches warm
        alone = caption(server, live, BESIDE_STREAMS)
        recording = tool.upload(talk.read_bytes(), talk.name)

        def heard_ms() -> int:
            """How far the draft has come."""
            answer = tool.ask("GET", f"{recording}/export.json")
            segments = json.loads(answer.body)["segments"] if answer.status == 200 else []
            return int(segments[-1]["end_ms"]) if segments else 0

        wait_until(lambda: heard_ms() > 0, timeout_s=180, what="the draft grows")
        before_ms = heard_ms()
        beside = caption(server, live, BESIDE_STREAMS)
        after_ms = heard_ms()
    finally:
        server.stop()
        shutil.rmtree(server.data_dir, ignore_errors=True)
    return {"alone": alone, "beside": beside, "before_ms": before_ms, "after_ms": after_ms}


def refined_lines(reports: dict[str, dict[str, Any]]) -> list[str]:
    lines = [
        "",
        "## Live streams and their second pass",
        "",
        f"{BESIDE_STREAMS} live streams, without and with the second pass over each utterance",
        "(`TRANSCRIBE_LIVE_REFINE`; `auto` waits while captions are late), and how long after the",
        "final its refined text came (p50 / p95).",
        "",
        "| second pass | lag p50 / p95 s | final p50 / p95 s | finals | refined | after s |",
        "|---|---|---|---|---|---|",
    ]
    for choice, report in reports.items():
        lag, final, after = (
            report[name] for name in ("lag_s", "time_to_final_s", "final_to_refined_s")
        )
        waited = f"{after['p50']} / {after['p95']}" if report["refined"] else "–"
        lines.append(
            f"| {choice} | {lag['p50']} / {lag['p95']} | {final['p50']} / {final['p95']} | "
            f"{report['finals']} | {report['refined']} | {waited} |"
        )
    ratio = reports["auto"]["lag_s"]["p95"] / reports["off"]["lag_s"]["p95"]
    return [*lines, "", f"Lag p95 with the second pass / without: {ratio:.2f}."]


def beside_lines(report: dict[str, Any]) -> list[str]:
    first, last = report["before_ms"] / 60_000, report["after_ms"] / 60_000
    lines = [
        "",
        "## Live streams beside an upload",
        "",
        f"{BESIDE_STREAMS} live streams, alone and while a recording of {UPLOAD_S // 60} minutes",
        "is transcribed. The job waits while live streams lag: meanwhile it came from minute",
        f"{first:.1f} to minute {last:.1f}.",
        "",
        "| | lag p50 s | lag p95 s | final p50 / p95 s | lost |",
        "|---|---|---|---|---|",
    ]
    for name, key in (("no upload", "alone"), ("beside the upload", "beside")):
        one = report[key]
        lag, final = one["lag_s"], one["time_to_final_s"]
        lines.append(
            f"| {name} | {lag['p50']} | {lag['p95']} | {final['p50']} / {final['p95']} | "
            f"{one['lost_events']} |"
        )
    ratio = report["beside"]["lag_s"]["p95"] / report["alone"]["lag_s"]["p95"]
    return [*lines, "", f"Lag p95 beside the upload / without: {ratio:.2f}."]


def page(
    batch: dict[str, Any],
    live: list[dict[str, Any]],
    refined: dict[str, dict[str, Any]],
    beside: dict[str, Any],
    loads: str,
    audio: Path,
) -> str:
    """The Markdown of docs/benchmarks.md."""
    what = f"{batch['model']}, {batch['compute_type']} on {batch['device']}, "
    what += f"{batch['threads']} threads"
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`; do not edit. Run it on your own machine: absolute times are this",
        "one's, with whatever else it was doing. Both passes by kind of recording, beside others,",
        "stand in [benchmarks-batch.md](benchmarks-batch.md), the streaming engine with NeMo",
        "models in [benchmarks-engine.md](benchmarks-engine.md).",
        "",
        f"- Machine: {machine()}; load average {loads} (1.0 is one busy core)",
        f"- When: {datetime.now(UTC):%Y-%m-%d}",
        f"- faster-whisper {version('faster-whisper')}, CTranslate2 {version('ctranslate2')}",
        f"- Audio: `{audio.name}`, {REPEATS} times over",
        "",
        "## A recording",
        "",
        "Draft pass, from file to text and word times, beside bare faster-whisper in the same",
        f"process: {what}, medians of",
        "alternating rounds. CPU time counts what the work itself took; wall time also what other",
        "processes took from it.",
        "",
        "| | ours | faster-whisper | ours / theirs |",
        "|---|---|---|---|",
    ]
    for file in batch["files"]:
        cpu, wall = file["cpu_s"], file["wall_s"]
        lines += [
            f"| CPU seconds | {cpu['draft']} | {cpu['theirs']} | {file['draft_ratio']} |",
            f"| wall seconds | {wall['draft']} | {wall['theirs']} | {file['draft_wall_ratio']} |",
            f"| words | {file['words']['draft']} | {file['words']['theirs']} | |",
            f"| refine pass on top, CPU seconds | {cpu['refined']} | | |",
        ]
    lines += [
        "",
        "## Live streams",
        "",
        f"`manage.py caption` against a supervised server, {engine_settings().live_model_en}:",
        "every part takes its share of the same cores. Time to first partial counts from the start",
        "of the first word, time to final from the end of the last: it includes the silence that",
        "ends an utterance. Cores: what the engine takes for each stream.",
        "",
        "| streams | first partial p50 / p95 s | final p50 / p95 s | lag p95 s | cores | lost |",
        "|---|---|---|---|---|---|",
    ]
    for report in live:
        first, final = report["time_to_first_partial_s"], report["time_to_final_s"]
        lines.append(
            f"| {report['streams']} | {first['p50']} / {first['p95']} | {final['p50']} / "
            f"{final['p95']} | {report['lag_s']['p95']} | {report['cores_a_stream']:.2f} | "
            f"{report['lost_events']} |"
        )
    return "\n".join([*lines, *refined_lines(refined), *beside_lines(beside)]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audio", type=Path, default=SAMPLE, help="English speech")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    before = load()
    with tempfile.TemporaryDirectory() as folder:
        audio = repeat(options.audio, Path(folder) / "audio.wav", REPEATS)
        batch = measure_batch(audio, options.rounds)
        live = measure_live(audio, options.streams)
        refined = measure_refined(options.audio, Path(folder))
        beside = measure_beside_upload(options.audio, Path(folder))
    loads = f"{before} before, {load()} after"
    PAGE.write_text(page(batch, live, refined, beside, loads, options.audio))
    sys.stdout.write(PAGE.read_text())


if __name__ == "__main__":
    main()
