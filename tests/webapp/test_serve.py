"""The launcher of Daphne: bodies are bounded before they are read, and never parsed by Twisted."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from openai import APIStatusError, AuthenticationError, OpenAI
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.fakes.waiting import wait_until
from webapp.config import Settings
from webapp.serve import (
    MAX_BODY_BYTES,
    body_limit_bytes,
    endpoint,
    listen_shared,
    log_request,
)
from webapp.setup import free_port

ROOT = Path(__file__).resolve().parent.parent.parent
MIB = 1024**2


@pytest.fixture(scope="module")
def web(valkey_servers: None) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A web process of its own: (port, process)."""
    collect = [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity=0"]
    subprocess.run(collect, cwd=ROOT, check=True)  # error pages name their stylesheet
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "webapp.serve"],
        cwd=ROOT,
        env={**os.environ, "TRANSCRIBE_PORT": str(port)},
        stdout=subprocess.DEVNULL,
    )

    def is_listening() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_until(is_listening, timeout_s=30, what="the web process listens")
    yield port, process
    process.terminate()
    process.wait(timeout=20)


def resident_bytes(process: subprocess.Popen[bytes]) -> int:
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def post_in_pieces(port: int, headers: dict[str, str], pieces: int, *, path: str = "/") -> bytes:
    """Send `pieces` MiB and read what comes back, whenever it comes."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        lines = [f"POST {path} HTTP/1.1", "Host: localhost"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        is_chunked = "Transfer-Encoding" in headers
        try:
            for _ in range(pieces):
                piece = b"x" * MIB
                connection.sendall(b"100000\r\n" + piece + b"\r\n" if is_chunked else piece)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it hung up on us, as it may
        answer = b""
        try:
            while data := connection.recv(65536):
                answer += data
        except ConnectionResetError:
            pass
        return answer


def test_declared_body_above_the_limit_is_refused_before_it_is_sent(
    web: tuple[int, subprocess.Popen[bytes]],
) -> None:
    """The sender learns the limit and the resumable way, though it has sent only headers."""
    port, _ = web
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.putrequest("POST", "/accounts/login/")
    connection.putheader("Content-Length", str(MAX_BODY_BYTES + 1))
    connection.endheaders()
    response = connection.getresponse()
    problem = json.loads(response.read())
    connection.close()
    assert response.status == 413
    assert response.headers["Content-Type"] == "application/problem+json"
    assert problem["code"] == "too_large"
    assert problem["limit_bytes"] == MAX_BODY_BYTES
    assert "/api/v1/uploads/" in problem["detail"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Length": str(200 * MIB), "Content-Type": "multipart/form-data; boundary=b"},
        {"Transfer-Encoding": "chunked", "Content-Type": "application/octet-stream"},
        {"Content-Length": str(200 * MIB), "Expect": "100-continue"},
    ],
    ids=["multipart", "chunked", "expect"],
)
def test_memory_stays_flat_while_a_large_body_is_refused(
    web: tuple[int, subprocess.Popen[bytes]], headers: dict[str, str]
) -> None:
    port, process = web
    before = resident_bytes(process)
    answer = post_in_pieces(port, headers, pieces=200)
    assert b" 413 " in answer
    assert b"100 Continue" not in answer
    assert resident_bytes(process) - before < 24 * MIB


def test_form_within_the_limit_is_parsed_by_django_only(
    web: tuple[int, subprocess.Popen[bytes]],
) -> None:
    """A broken multipart body is Django's to answer (403), not Twisted's (400)."""
    port, _ = web
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(
        "POST",
        "/accounts/login/",
        body=b"not a form",
        headers={"Content-Type": "multipart/form-data"},
    )
    assert connection.getresponse().status == 403
    connection.close()


def test_access_log_holds_no_query_and_no_key() -> None:
    with structlog.testing.capture_logs() as logs:
        for path in (
            "/accounts/password/reset/key/1-abc123/",
            "/s/b3BlbiBzZXNhbWU/room/",
            "/?q=secret",
        ):
            details = {"method": "GET", "path": path, "status": 200, "time_taken": 0.1}
            log_request("http", "complete", details)
    assert [entry["path"] for entry in logs] == [
        "/accounts/password/reset/key/[private]",
        "/s/[private]",
        "/",
    ]


def test_audio_endpoint_has_a_limit_of_its_own() -> None:
    assert body_limit_bytes(b"/v1/audio/transcriptions") == 64 * MIB
    assert body_limit_bytes(b"/api/v1/uploads/") == 16 * MIB


def openai_client(port: int) -> OpenAI:
    """Without a token that the process, which has no database, could look up."""
    return OpenAI(
        base_url=f"http://localhost:{port}/v1",
        api_key="unused",
        default_headers={"Authorization": "None"},
        max_retries=0,
    )


def test_openai_s_client_is_told_the_limit_and_the_resumable_way(
    web: tuple[int, subprocess.Popen[bytes]],
) -> None:
    port, process = web
    before = resident_bytes(process)
    with openai_client(port) as client, pytest.raises(APIStatusError) as refusal:
        client.audio.transcriptions.create(model="whisper-1", file=("a.wav", bytes(65 * MIB)))
    assert refusal.value.status_code == 413
    assert "64 MB" in refusal.value.message
    assert "/api/v1/uploads/" in refusal.value.message
    assert resident_bytes(process) - before < 24 * MIB


def test_a_body_within_the_limit_is_taken_in_bounded_memory(
    web: tuple[int, subprocess.Popen[bytes]],
) -> None:
    """60 MB of a stranger's end on disk, and are forgotten with the answer."""
    port, process = web
    before = resident_bytes(process)
    with openai_client(port) as client, pytest.raises(AuthenticationError):
        client.audio.transcriptions.create(model="whisper-1", file=("a.wav", bytes(60 * MIB)))
    assert resident_bytes(process) - before < 24 * MIB


def test_request_after_a_refusal_is_answered(web: tuple[int, subprocess.Popen[bytes]]) -> None:
    port, _ = web
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/static/none.css")
    assert connection.getresponse().status == 404
    connection.close()


async def test_message_above_the_limit_closes_the_socket(
    web: tuple[int, subprocess.Popen[bytes]],
) -> None:
    """Before it is gathered: the process does not grow by what strangers send."""
    port, process = web
    before = resident_bytes(process)
    async with connect(f"ws://127.0.0.1:{port}/ws/v1/stream", compression=None) as socket:
        with contextlib.suppress(ConnectionClosed):
            await socket.send(b"x" * 64 * MIB)
        await socket.wait_closed()
        # 1009, or a lost connection where that answer meets what is still being sent.
        assert socket.close_code in {1006, 1009}
    assert resident_bytes(process) - before < 24 * MIB


def test_several_may_listen_on_one_port() -> None:
    port = free_port()
    with listen_shared("127.0.0.1", port), listen_shared("127.0.0.1", port) as second:
        assert second.getsockname() == ("127.0.0.1", port)


def test_address_is_told_to_twisted() -> None:
    settings = Settings(secret_key="x", host="::1", port=8001)
    assert endpoint(settings) == "tcp:8001:interface=\\:\\:1"
