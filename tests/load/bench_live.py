"""`make bench-live`: live captions at size, by real sockets, and docs/benchmarks-live.md.

    python -m tests.load.bench_live [--parts captures viewers largest opens soak peer]
        [--captures 127] [--seconds 180] [--audience 500] [--sizes 100 150 …] [--soak-hours 4]
        [--peer whisper-live] [--page docs/benchmarks-live.md] [--lines FILE]

Each part starts a supervised server of its own with the scripted model, which reads its words out
of the samples: what is lost, doubled or late is the server's doing and shows in the text. The load
(`manage.py caption`) shares the machine, so its CPU time is named. One JSON line for each run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import soundfile

from asr_engine.audio import SAMPLE_RATE
from asr_engine.backends import scripted
from tests.e2e.conftest import ROOT, Server, make_server
from tests.load.live_page import page
from tests.load.machine import load
from tests.load.process_figures import ProcessWatch

PARTS: Final = ("captures", "viewers", "opens", "largest", "soak", "peer")
WORDS_PER_UTTERANCE: Final = 30
PAUSE_MS: Final = 1200
DELAY_LIMIT_S: Final = 0.06
DRIFT_LIMIT_S: Final = 0.05
SOAK_SPEED: Final = 7.0
"""Below the pace at which the server takes what was kept during an outage."""
SOAK_SAMPLE_S: Final = 15.0
ROOMY: Final = {
    "TRANSCRIBE_MAX_SESSIONS": "1000",
    "TRANSCRIBE_MAX_SESSIONS_PER_PERSON": "1000",
    "TRANSCRIBE_MAX_VIEWERS": "5000",
    "TRANSCRIBE_MAX_VIEWERS_PER_SESSION": "5000",
    "TRANSCRIBE_LOG_LEVEL": "WARNING",
    "TRANSCRIBE_LIVE_REFINE": "off",
}
"""One person speaks in all sessions here; the limits are tested elsewhere. Who captions so many
people has a machine of its own for the second pass."""


def write_speech(folder: Path, seconds: float) -> tuple[Path, Path]:
    """A recording of numbered words, and what a correct transcript of it says."""
    block_s = scripted.BLOCK_SAMPLES / SAMPLE_RATE
    per_utterance_s = WORDS_PER_UTTERANCE * block_s + PAUSE_MS / 1000
    words = max(1, round(seconds / per_utterance_s)) * WORDS_PER_UTTERANCE
    blocks = scripted.script(words, utterance_words=WORDS_PER_UTTERANCE, pause_ms=PAUSE_MS)
    audio, text = folder / f"speech-{seconds:.0f}.wav", folder / f"speech-{seconds:.0f}.txt"
    with soundfile.SoundFile(audio, "w", SAMPLE_RATE, 1, "PCM_16") as file:
        for start in range(0, len(blocks), 600):
            file.write(scripted.encode_blocks(blocks[start : start + 600]))
    text.write_text(scripted.script_text(blocks))
    return audio, text


@contextmanager
def running_server(slots: int, **environment: str) -> Iterator[Server]:
    server = make_server(ASR_SLOTS=str(slots), **{**ROOMY, **environment})
    try:
        server.start()
        server.wait_ready()
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.data_dir, ignore_errors=True)


def run_captions(
    server: Server, audio: Path, text: Path, *options: str, sample_s: float = 5.0
) -> dict[str, Any]:
    """One run of the load generator, with what the server's processes used meanwhile."""
    before = load()
    with ProcessWatch(server, sample_s=sample_s) as watch:
        done = subprocess.run(
            [
                sys.executable,
                "manage.py",
                "caption",
                str(audio),
                "--expect",
                str(text),
                "--report=json",
                *options,
            ],
            cwd=ROOT,
            env=server.environment,
            check=False,  # refused streams end it with 1, after the report
            stdout=subprocess.PIPE,
            text=True,
        )
    report: dict[str, Any] = json.loads(done.stdout)
    report.pop("recordings")
    return report | {
        "processes": watch.figures(),
        "samples": watch.samples,
        "load_before": before,
        "load_after": load(),
    }


def is_right(report: dict[str, Any]) -> bool:
    """Nobody refused, nothing lost, doubled or wrong."""
    readers = report.get("viewers") or {}
    return (
        not report["refused"]
        and not report["problems"]
        and not report["lost_events"]
        and not report["doubled_events"]
        and not report["stored"]["wrong"]
        and not readers.get("lost_events")
        and not readers.get("lost_finals")
        and not readers.get("refusals")
    )


def is_on_time(report: dict[str, Any]) -> bool:
    delay = report["added_delay_s"]
    return bool(
        delay["p95"] is not None
        and delay["p95"] <= DELAY_LIMIT_S
        and delay["drift_s"] <= DRIFT_LIMIT_S
    )


class Bench:
    """The parts, each printing its lines as they come."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self._options = options
        self._folder = folder
        self.lines: list[dict[str, Any]] = []

    def say(self, line: dict[str, Any]) -> None:
        self.lines.append(line)
        printed = {key: value for key, value in line.items() if key != "samples"}
        text = json.dumps(printed)
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
        if self._options.lines:
            with self._options.lines.open("a") as file:
                file.write(json.dumps(line) + "\n")

    def _measure(
        self, part: str, server: Server, seconds: float, *options: str, **facts: Any
    ) -> dict[str, Any]:
        audio, text = write_speech(self._folder, seconds)
        sample_s = facts.pop("sample_s", 5.0)
        report = run_captions(server, audio, text, *options, sample_s=sample_s)
        line = {
            "part": part,
            **facts,
            "is_right": is_right(report),
            "is_on_time": is_on_time(report),
            **report,
        }
        self.say(line)
        return line

    def captures(self) -> None:
        """Many captures with some readers on one of them."""
        options = self._options
        with running_server(options.captures + 8, **self._web(options.web)) as server:
            self._measure(
                "captures",
                server,
                options.seconds,
                f"--clients={options.captures}",
                f"--viewers={options.viewers}",
                f"--packet={options.packet}",
                packet_ms=options.packet,
                web=options.web,
            )

    def viewers(self) -> None:
        """One capture with a whole organisation reading it."""
        options = self._options
        with running_server(8, **self._web(options.web)) as server:
            self._measure(
                "viewers",
                server,
                options.seconds,
                f"--viewers={options.audience}",
                f"--packet={options.packet}",
                packet_ms=options.packet,
                web=options.web,
            )

    def opens(self) -> None:
        """More simultaneous opens than slots."""
        options = self._options
        with running_server(options.slots) as server:
            audio, text = write_speech(self._folder, 10)
            report = run_captions(
                server, audio, text, f"--clients={options.opens}", "--spread=0", "--packet=200"
            )
        self.say(
            {
                "part": "opens",
                "slots": options.slots,
                "opens": options.opens,
                "admitted": report["streams"] - len(report["refused"]),
                "without_reason": sum(not reason for reason in report["refused"]),
                "reasons": sorted(set(report["refused"])),
                **report,
            }
        )

    def largest(self) -> None:
        """The largest number of captures that is right and on time, by packet and web processes."""
        options = self._options
        for web in options.web_processes:
            for packet_ms in options.packets:
                with running_server(max(options.sizes) + 8, **self._web(web)) as server:
                    for size in sorted(options.sizes):
                        line = self._measure(
                            "largest",
                            server,
                            options.largest_seconds,
                            f"--clients={size}",
                            f"--packet={packet_ms}",
                            "--spread=0.03",
                            packet_ms=packet_ms,
                            web=web,
                        )
                        if not (line["is_right"] and line["is_on_time"]):
                            break

    def soak(self) -> None:
        """One long session, its audio clock ahead of the wall's; a reader beside it."""
        options = self._options
        with running_server(8, TRANSCRIBE_MAX_RECORDING_HOURS="24") as server:
            self._measure(
                "soak",
                server,
                options.soak_hours * 3600,
                f"--speed={options.soak_speed}",
                "--viewers=1",
                "--packet=200",
                hours=options.soak_hours,
                speed=options.soak_speed,
                sample_s=SOAK_SAMPLE_S,
            )

    def peer(self) -> None:
        """Another server of live captions, with the same weights, audio and number of clients."""
        from tests.load import peers

        for line in peers.compare(self._options.peer, self._options.peer_streams, self._folder):
            self.say(line)

    def _web(self, count: int) -> dict[str, str]:
        return {"TRANSCRIBE_WEB_PROCESSES": str(count)}


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[])
    parser.add_argument("--seconds", type=float, default=180.0, help="of speech, two parts")
    parser.add_argument("--captures", type=int, default=127)
    parser.add_argument("--viewers", type=int, default=20, help="beside the captures")
    parser.add_argument("--audience", type=int, default=500, help="of the part `viewers`")
    parser.add_argument("--packet", type=int, default=200, help="milliseconds")
    parser.add_argument("--web", type=int, default=1, help="web processes of two parts")
    parser.add_argument("--slots", type=int, default=20)
    parser.add_argument("--opens", type=int, default=50)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 150, 200, 250, 300, 400])
    parser.add_argument("--packets", type=int, nargs="+", default=[200, 320])
    parser.add_argument("--web-processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--largest-seconds", type=float, default=45.0)
    parser.add_argument("--soak-hours", type=float, default=0.0, help="of audio; 0: no soak")
    parser.add_argument("--soak-speed", type=float, default=SOAK_SPEED)
    parser.add_argument("--peer", choices=["whisper-live"], help="installed in a folder of its own")
    parser.add_argument("--peer-streams", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "benchmarks-live.md")
    parser.add_argument("--lines", type=Path, help="append the JSON lines here too")
    parser.add_argument("--from-lines", type=Path, help="only write the page, from such a file")
    options = parser.parse_args()
    if not options.parts:
        options.parts = ["captures", "viewers", "opens", "largest"]
        options.parts += ["soak"] if options.soak_hours else []
        options.parts += ["peer"] if options.peer else []
    if "soak" in options.parts and not options.soak_hours:
        parser.error("the part soak needs --soak-hours")
    if "peer" in options.parts and not options.peer:
        parser.error("the part peer needs --peer")
    return options


def main() -> None:
    options = parse_options()
    if options.from_lines:
        lines = [json.loads(line) for line in options.from_lines.read_text().splitlines()]
    else:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(options, Path(folder))
            for part in options.parts:
                getattr(bench, part)()
            lines = bench.lines
    options.page.write_text(page(lines))


if __name__ == "__main__":
    main()
