"""Another server of live captions beside ours: the same weights, speech and number of clients.

`whisper-live` is installed into a virtual environment in the run's temporary folder, by pip, and is
no requirement of this project. Of what it needs in turn it gets what its web part does; the speech
packages are those that this project has, the same for both. Both hear English from the Whisper and
Silero models of the store, in real time; the lag of each shown text counts from the end of its
words, as that server times them. Where the package does not install, a line says so and nothing is
compared.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from asr_engine.audio import SAMPLE_RATE
from asr_engine.batch.decode import decode_audio
from asr_engine.config import engine_settings
from tests.e2e.conftest import ROOT, make_server
from tests.load.bench import SAMPLE, cpu_seconds, repeat
from tests.load.machine import load
from tests.load.process_figures import cpu_seconds_of
from transcription.runners.caption_report import spread_of
from webapp.setup import free_port

PACKAGES: Final = {"whisper-live": "whisper-live==0.10.0"}
WEB_PACKAGES: Final = ("fastapi", "uvicorn", "python-multipart")
REPEATS: Final = 2
PACKET_SAMPLES: Final = SAMPLE_RATE // 5
START_TIMEOUT_S: Final = 120.0
READY_TIMEOUT_S: Final = 60.0
LAST_WORDS_S: Final = 10.0
_SERVE: Final = """
import sys
from whisper_live.server import TranscriptionServer
from whisper_live.vad import VoiceActivityDetection
VoiceActivityDetection.download = staticmethod(lambda *_: sys.argv[3])  # else from the network
TranscriptionServer().run(
    "127.0.0.1", port=int(sys.argv[1]), backend="faster_whisper",
    faster_whisper_custom_model_path=sys.argv[2], max_clients=64, max_connection_time=3600,
)
"""


def compare(peer: str, counts: list[int], folder: Path) -> Iterator[dict[str, Any]]:
    """Lines of the part `peer`: ours and theirs for each number of clients."""
    model = engine_settings().live_model_en
    audio = repeat(SAMPLE, folder / "peer.wav", REPEATS)
    python = install(peer, folder / "peer")
    for count in counts:
        yield {"part": "peer", "server": "ours", "model": model, **hear_with_ours(audio, count)}
        if python is not None:
            report = hear_with_peer(python, engine_settings().model_dir / model, audio, count)
            yield {"part": "peer", "server": PACKAGES[peer], "model": model, **report}
    if python is None:
        sys.stderr.write(f"{PACKAGES[peer]} could not be installed: there is nothing beside us.\n")


def install(peer: str, folder: Path) -> Path | None:
    """The Python of a new virtual environment with the peer; None where pip finds no way."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    ours, theirs = sysconfig.get_path("purelib"), next(folder.glob("lib/python*/site-packages"))
    (theirs / "ours.pth").write_text(f"{ours}\n")
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    for packages in (["--no-deps", PACKAGES[peer]], [*WEB_PACKAGES]):
        if subprocess.run([*pip, *packages], check=False).returncode:
            return None
    return python


def hear_with_ours(audio: Path, count: int) -> dict[str, Any]:
    load_before = load()
    server = make_server(ASR_LIVE_BACKEND="whisper")
    try:
        server.start()
        server.wait_ready()
        before_s, started_s = cpu_seconds(server, "engine"), time.monotonic()
        options = ("--clients", str(count), "--language", "en", "--report", "json")
        done = subprocess.run(
            [sys.executable, "manage.py", "caption", str(audio), *options],
            cwd=ROOT,
            env=server.environment,
            check=False,
            stdout=subprocess.PIPE,
            text=True,
        )
        used_s = cpu_seconds(server, "engine") - before_s
        elapsed_s = time.monotonic() - started_s
    finally:
        server.stop()
    report = json.loads(done.stdout)
    return {
        "streams": count,
        "connected": count - len(report["refused"]),
        "lag_s": report["lag_s"],
        "cores": round(used_s / elapsed_s, 2),
        "load_before": load_before,
        "load_after": load(),
    }


def voice_activity_file() -> Path:
    return engine_settings().model_dir / "silero-vad" / "silero_vad_16k_op15.onnx"


@contextmanager
def peer_server(python: Path, model: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    port = free_port()
    process = subprocess.Popen(
        [str(python), "-c", _SERVE, str(port), str(model), str(voice_activity_file())],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield port, process
    finally:
        process.terminate()
        process.wait(timeout=20)


def hear_with_peer(python: Path, model: Path, audio: Path, count: int) -> dict[str, Any]:
    samples = np.concatenate(list(decode_audio(audio))).astype(np.float32)
    with peer_server(python, model) as (port, process):
        return asyncio.run(_speak_to_peer(port, samples, count, process))


async def _speak_to_peer(
    port: int, samples: np.ndarray[Any, Any], count: int, process: subprocess.Popen[bytes]
) -> dict[str, Any]:
    address = f"ws://127.0.0.1:{port}"
    load_before = load()
    await _wait_for(address)
    before_s, started_s = cpu_seconds_of(process.pid), time.monotonic()
    heard = await asyncio.gather(
        *(_one_client(address, samples, number) for number in range(count))
    )
    used_s = cpu_seconds_of(process.pid) - before_s
    return {
        "streams": count,
        "connected": sum(lags is not None for lags in heard),
        "lag_s": spread_of([lag for lags in heard for lag in lags or ()]),
        "cores": round(used_s / (time.monotonic() - started_s), 2),
        "load_before": load_before,
        "load_after": load(),
    }


async def _wait_for(address: str) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            async with connect(address):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.5)


async def _one_client(
    address: str, samples: np.ndarray[Any, Any], number: int
) -> list[float] | None:
    """The lag of each new text; None for a client that was never served."""
    hello = {
        "uid": f"client-{number}",
        "language": "en",
        "task": "transcribe",
        "model": "custom",
        "use_vad": True,
    }
    async with connect(address, max_size=None) as socket:
        await socket.send(json.dumps(hello))
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                while json.loads(await socket.recv()).get("message") != "SERVER_READY":
                    pass
        except (TimeoutError, ConnectionClosed):
            return None
        started_s = time.monotonic()
        listening = asyncio.create_task(_listen(socket, started_s))
        for start in range(0, len(samples), PACKET_SAMPLES):
            spoken_s = started_s + (start + PACKET_SAMPLES) / SAMPLE_RATE
            await asyncio.sleep(max(0.0, spoken_s - time.monotonic()))
            await socket.send(samples[start : start + PACKET_SAMPLES].tobytes())
        await asyncio.wait([listening], timeout=LAST_WORDS_S)
        await socket.send(b"END_OF_AUDIO")
    return await listening


async def _listen(socket: ClientConnection, started_s: float) -> list[float]:
    lags, known = [], ""
    try:
        async for message in socket:
            segments = json.loads(message).get("segments") or []
            text = " ".join(segment["text"].strip() for segment in segments)
            if segments and text != known:
                known = text
                lags.append(time.monotonic() - started_s - float(segments[-1]["end"]))
    except ConnectionClosed:
        pass
    return lags
