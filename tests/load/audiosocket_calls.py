"""Many telephone calls at once through `manage.py audiosocket`, one of them killed in the middle.

    python -m tests.load.audiosocket_calls [--calls 50] [--words 120]

A whole server with the scripted model, the bridge as a process of its own, and a scripted exchange.
Each call says numbers of its own, so a lost, doubled or mixed-up frame shows as wrong text. Prints
JSON, and fails where a call that hung up has not exactly its words, or the one that was killed has
words that it did not say.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.e2e.conftest import ROOT, Server, make_server
from tests.fakes.exchange import ScriptedCall
from tests.fakes.waiting import wait_until
from webapp.setup import free_port

FINISHED_S = 120.0
READY_S = 60.0


def run_calls(server: Server, *, calls: int, words: int, cut_after_s: float) -> dict[str, Any]:
    """Call, hang up, wait until the server has all; what it has, beside what was said."""
    port = free_port()
    token = server.data_dir / "exchange.token"
    answer = server.manage("createtoken", "exchange", "--service", "--scope", "live:write")
    secret = next(word for word in answer.split() if word.startswith("tr_"))
    token.touch(mode=0o600)
    token.write_text(secret)
    log = server.data_dir / "audiosocket.log"
    with log.open("ab") as output:
        bridge = subprocess.Popen(
            [
                sys.executable,
                "manage.py",
                "audiosocket",
                "--listen",
                f"127.0.0.1:{port}",
                "--token-file",
                str(token),
            ],
            cwd=ROOT,
            env=server.environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(
            lambda: "audiosocket_listens" in log.read_text(), timeout_s=READY_S, what="it listens"
        )
        spoken = [
            ScriptedCall(
                port,
                words,
                first=number * 3,
                cut_after_s=cut_after_s if number == calls // 2 else None,
            )
            for number in range(calls)
        ]
        started = time.monotonic()
        asyncio.run(_all(spoken))
        spoke_s = time.monotonic() - started
        wait_until(
            lambda: _finals(server, spoken)[1] == calls,
            timeout_s=FINISHED_S,
            what="every session has ended",
        )
        cpu_s = _cpu_s(bridge.pid)
    finally:
        bridge.terminate()
        bridge.wait(timeout=60)
    texts, _ = _finals(server, spoken)
    whole = [call for call in spoken if call.cut_after_s is None]
    killed = next(call for call in spoken if call.cut_after_s is not None)
    return {
        "calls": calls,
        "spoke_s": round(spoke_s, 1),
        "right": sum(texts[str(call.id)] == call.text for call in whole),
        "wrong": sum(texts[str(call.id)] != call.text for call in whole),
        "killed_said": len(texts[str(killed.id)].split()),
        "killed_is_a_beginning": killed.text.startswith(texts[str(killed.id)]),
        "bridge_exit": bridge.returncode,
        "bridge_cpu_s": cpu_s,
        "load_cpu_s": round(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]), 1),
    }


async def _all(calls: list[ScriptedCall]) -> None:
    await asyncio.gather(*(call.run() for call in calls))


def _finals(server: Server, calls: list[ScriptedCall]) -> tuple[dict[str, str], int]:
    """What the server has of each call, and how many of them have ended."""
    ids = {str(call.id) for call in calls}
    states = server.rows("select id, reference, state from transcription_livesession")
    own = {session: reference for session, reference, _ in states if reference in ids}
    ended = sum(state == "ended" and reference in ids for _, reference, state in states)
    texts = dict.fromkeys(ids, "")
    rows = server.rows(
        "select session_id, text from transcription_liveutterance order by session_id, utterance"
    )
    for session, text in rows:
        if session in own:
            texts[own[session]] = f"{texts[own[session]]} {text}".strip()
    return texts, ended


def _cpu_s(process_id: int) -> float:
    fields = Path(f"/proc/{process_id}/stat").read_text().rsplit(") ", 1)[1].split()
    return round((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--words", type=int, default=120)
    options = parser.parse_args()
    server = make_server(ASR_SLOTS=str(options.calls + 5), TRANSCRIBE_LIVE_REFINE="off")
    try:
        server.start()
        server.wait_ready()
        result = run_calls(
            server,
            calls=options.calls,
            words=options.words,
            cut_after_s=options.words / 10 / 2,
        )
    finally:
        server.stop()
        shutil.rmtree(server.data_dir, ignore_errors=True)
    sys.stdout.write(json.dumps(result, indent=2) + "\n")
    is_right = not result["wrong"] and result["killed_is_a_beginning"] and result["killed_said"]
    sys.exit(0 if is_right else 1)


if __name__ == "__main__":
    main()
