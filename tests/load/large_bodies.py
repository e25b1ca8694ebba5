"""Large bodies through a whole server: what its web process holds in memory meanwhile.

    python -m tests.load.large_bodies [tus openai refused real] [--gib 2] [--clients 4]

`tus` uploads a recording of so many GiB by tus through REST, as `manage.py transcribe --url` does,
and compares what is stored, byte by byte (SHA-256). `openai` sends 60 MB each from so many of
OpenAI's clients at once, who wait for their answers. `refused` sends 1 GiB to the same address.
`real` (not with the others: it has a server of its own) has the embedded model transcribe a
recording of speech for OpenAI's client. One JSON line for each: seconds, and the most that the web
process held above what it held before, in MiB.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import json
import shutil
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from openai import OpenAI

from tests.e2e.conftest import ROOT, Server, make_server
from tests.load.machine import load
from transcription.runners.remote_transcription import RemoteServer

PARTS: Final = ("tus", "openai", "refused", "real")
GIB: Final = 1024**3
MIB: Final = 1024**2
RATE, CHANNELS, SAMPLE_BYTES = 192_000, 2, 4
SAMPLE: Final = ROOT / "static" / "audio" / "sample.ogg"


def write_silence(path: Path, data_bytes: int) -> None:
    """A WAV of silence whose every MiB begins with its own number; mostly a hole in the disk."""
    frame_bytes = CHANNELS * SAMPLE_BYTES
    layout = struct.pack(
        "<HHIIHH", 1, CHANNELS, RATE, RATE * frame_bytes, frame_bytes, SAMPLE_BYTES * 8
    )
    with path.open("wb") as file:
        file.write(b"RIFF" + struct.pack("<I", 36 + data_bytes) + b"WAVE")
        file.write(b"fmt " + struct.pack("<I", 16) + layout)
        file.write(b"data" + struct.pack("<I", data_bytes))
        start = file.tell()
        for offset in range(0, data_bytes, MIB):
            file.seek(start + offset)
            file.write(struct.pack("<i", offset // MIB))
        file.truncate(start + data_bytes)


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Peak:
    """The most memory of the web process, from now on."""

    def __init__(self, server: Server) -> None:
        self._folder = Path(f"/proc/{server.process_id('web')}")
        (self._folder / "clear_refs").write_text("5")  # begins a new peak (proc(5))
        self._before_kib = self._kib("VmRSS")

    def grown_mib(self) -> float:
        return round((self._kib("VmHWM") - self._before_kib) / 1024, 1)

    def _kib(self, name: str) -> int:
        lines = (self._folder / "status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


@contextmanager
def measured(server: Server, what: str) -> Iterator[dict[str, Any]]:
    """A line of figures; what is put into it is printed with them."""
    peak, begun = Peak(server), time.monotonic()
    figures: dict[str, Any] = {"what": what}
    yield figures
    figures["seconds"] = round(time.monotonic() - begun, 1)
    figures["web_grew_mib"] = peak.grown_mib()
    print(json.dumps(figures | {"load_average": load()}), flush=True)  # noqa: T201  # the result


def by_tus(server: Server, token: str, folder: Path, arguments: argparse.Namespace) -> None:
    path = folder / "large.wav"
    write_silence(path, int(arguments.gib * GIB))
    marks: dict[str, float] = {}

    def note(stage: str, share: float) -> None:
        marks.setdefault(stage, time.monotonic())

    with measured(server, "tus") as figures:
        with RemoteServer(server.base_url, token, progress=note) as client:
            client.transcribe(path, extension="txt")
        figures["gib"] = arguments.gib
        figures["upload_s"] = round(marks["checking"] - marks["uploading"], 1)
    (stored,) = (server.data_dir / "media" / "recordings").glob("*/source.bin")
    figures = {"what": "tus", "is_identical": digest_of(stored) == digest_of(path)}
    print(json.dumps(figures), flush=True)  # noqa: T201  # the result
    path.unlink()


def by_openai(server: Server, token: str, folder: Path, arguments: argparse.Namespace) -> None:
    path = folder / "sixty.wav"
    write_silence(path, 60 * MIB)

    def transcribe(_: int) -> str:
        url = f"{server.base_url}/v1"
        with OpenAI(base_url=url, api_key=token, timeout=3600, max_retries=0) as client:
            return client.audio.transcriptions.create(model="transcribe-draft", file=path).text

    with measured(server, "openai") as figures, ThreadPoolExecutor(arguments.clients) as clients:
        figures["clients"] = arguments.clients
        figures["answers"] = len(list(clients.map(transcribe, range(arguments.clients))))
    kept = server.rows("SELECT count(*) FROM transcription_recording WHERE title = 'sixty'")
    print(json.dumps({"what": "openai", "recordings_left": kept[0][0]}), flush=True)  # noqa: T201


def refused(server: Server, token: str, folder: Path, arguments: argparse.Namespace) -> None:
    with measured(server, "refused") as figures:
        connection = http.client.HTTPConnection("localhost", server.port, timeout=60)
        connection.putrequest("POST", "/v1/audio/transcriptions")
        connection.putheader("Authorization", f"Bearer {token}")
        connection.putheader("Content-Type", "multipart/form-data; boundary=b")
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        sent_mib = 0
        try:
            while sent_mib < GIB // MIB:
                connection.send(b"100000\r\n" + bytes(MIB) + b"\r\n")
                sent_mib += 1
        except OSError:  # it hung up on us, as it may
            pass
        answer = connection.getresponse()
        problem = json.loads(answer.read())
        figures |= {"sent_mib": sent_mib, "status": answer.status, "detail": problem["detail"]}
        connection.close()


def real(server: Server, token: str, folder: Path, arguments: argparse.Namespace) -> None:
    """What OpenAI's client hears of the sample that the pages play."""
    with (
        measured(server, "real") as figures,
        OpenAI(base_url=f"{server.base_url}/v1", api_key=token, timeout=3600) as client,
    ):
        answer = client.audio.transcriptions.create(
            model="whisper-1",
            file=SAMPLE,
            response_format="verbose_json",
            timestamp_granularities=["word"],
        )
        events = client.audio.transcriptions.create(model="whisper-1", file=SAMPLE, stream=True)
        deltas = [event.delta for event in events if event.type == "transcript.text.delta"]
        words = answer.words or []
        figures |= {
            "text": answer.text,
            "streamed_the_same": "".join(deltas) == answer.text,
            "language": answer.language,
            "duration_s": answer.duration,
            "words": len(words),
            "last_word": words[-1].model_dump() if words else None,
        }


RUNS: Final[dict[str, Callable[[Server, str, Path, argparse.Namespace], None]]] = {
    "tus": by_tus,
    "openai": by_openai,
    "refused": refused,
    "real": real,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("parts", nargs="*", choices=PARTS, default=list(PARTS[:3]))
    parser.add_argument("--gib", type=float, default=2.0)
    parser.add_argument("--clients", type=int, default=4)
    arguments = parser.parse_args()
    is_real = "real" in arguments.parts
    server = make_server(**({"ASR_BATCH_BACKEND": "whisper"} if is_real else {}))
    folder = Path(tempfile.mkdtemp(prefix="transcribe-large-"))
    try:
        server.start()
        server.wait_ready()
        token = server.manage("createtoken", server.email).strip()
        for part in arguments.parts:
            RUNS[part](server, token, folder, arguments)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(server.data_dir, ignore_errors=True)


if __name__ == "__main__":
    main()
