"""The embedded server under its supervisor: processes come back, and none is left behind."""

from __future__ import annotations

import json
import shutil
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from websockets.sync.client import connect

from tests.e2e.conftest import ROOT, START_TIMEOUT_S, Server, make_server
from tests.fakes.waiting import wait_until

NAMES = ("broker", "audio", "web", "engine", "recorder", "jobs", "chores", "beat")
BACK_WITHIN_S = 5.0
"""A promise of the design; the test allows for a shared machine by asking twice that."""


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """One server for this module's tests, which kill its processes."""
    server = make_server()
    server.start()
    yield server
    server.stop()
    shutil.rmtree(server.data_dir, ignore_errors=True)


@pytest.mark.parametrize("name", NAMES)
def test_killed_process_comes_back(own_server: Server, name: str) -> None:
    wait_until(
        lambda: own_server.process_id(name) is not None, timeout_s=30, what=f"{name} is running"
    )
    killed = own_server.kill(name)
    wait_until(
        lambda: own_server.process_id(name) not in {None, killed},
        timeout_s=2 * BACK_WITHIN_S,
        what=f"{name} is back",
    )
    wait_until(own_server.is_up, timeout_s=START_TIMEOUT_S, what="the site answers again")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_every_process_and_the_next_start_has_the_same_data(
    own_server: Server, number: signal.Signals
) -> None:
    wait_until(
        lambda: len(own_server.processes()) > len(NAMES),
        timeout_s=30,
        what="the supervisor and every process run",
    )
    assert own_server.stop(number) == 0
    assert own_server.processes() == []
    own_server.start()
    assert own_server.manage("showmigrations", "accounts").count("[X]") >= 1


def test_killed_supervisor_leaves_no_process(own_server: Server) -> None:
    assert own_server.process is not None
    own_server.process.kill()
    own_server.process.wait()
    wait_until(lambda: own_server.processes() == [], timeout_s=10, what="all processes are gone")
    own_server.start()


def test_second_server_on_the_same_data_is_refused(own_server: Server) -> None:
    refusal = subprocess.run(
        [sys.executable, "-m", "webapp.supervise"],
        cwd=ROOT,
        env=own_server.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert refusal.returncode == 1
    assert "already running" in refusal.stderr


@pytest.fixture(scope="module")
def lan_server() -> Iterator[Server]:
    """For the local network, with three web processes."""
    server = make_server(TRANSCRIBE_WEB_PROCESSES="3")
    server.scheme = "https"
    server.start("--lan")
    yield server
    server.stop()
    shutil.rmtree(server.data_dir, ignore_errors=True)


def test_several_web_processes_share_the_port(lan_server: Server) -> None:
    """All of them answer; while one is started again the others do, and it comes back."""
    server = lan_server
    names = {f"web-{number}" for number in (1, 2, 3)}
    wait_until(
        lambda: names <= who_answered(server),
        timeout_s=60,
        what="every web process has answered a request",
    )
    killed = server.kill("web-2")
    wait_until(
        lambda: server.process_id("web-2") not in {None, killed},
        timeout_s=2 * BACK_WITHIN_S,
        what="web-2 is back",
    )
    assert {server.status("/healthz") for _ in range(12)} == {200}


def who_answered(server: Server) -> set[str]:
    """The web processes that have logged a request, after one more."""
    server.status("/healthz")
    lines = server.log_path.read_text(errors="replace").splitlines()
    return {line.partition(" ")[0] for line in lines if "http_request_answered" in line}


def test_lan_server_is_trusted_by_who_trusts_its_authority(lan_server: Server) -> None:
    """Asked by https with the authority's certificate alone, names checked."""
    assert lan_server.status("/certificate/") == 200
    assert lan_server.status("/certificate/authority.crt") == 200
    assert lan_server.status("/healthz") == 200
    assert "This server speaks https" in ask_by_http(lan_server)
    assert stream_answer(lan_server) == "not_authenticated"


def ask_by_http(server: Server) -> str:
    """What a person gets who leaves out the `https://`."""
    try:
        address = f"http://127.0.0.1:{server.port}/"
        with urllib.request.urlopen(address, timeout=10) as response:
            return str(response.read().decode())
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.read().decode()


def stream_answer(server: Server) -> str:
    """The code of the refusal that a stranger's hello gets by wss."""
    context = ssl.create_default_context(cafile=server.data_dir / "tls" / "authority.pem")
    hello = {
        "type": "hello",
        "version": 1,
        "capture_id": "somebody-new",
        "sample_rate": 16000,
        "encoding": "pcm16",
    }
    with connect(f"wss://localhost:{server.port}/ws/v1/stream", ssl=context) as socket:
        socket.send(json.dumps(hello))
        return str(json.loads(socket.recv(timeout=30))["code"])
