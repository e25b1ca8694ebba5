"""The embedded server under its supervisor: processes come back, and none is left behind."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

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


def test_lan_server_is_trusted_by_who_trusts_its_authority() -> None:
    """Asked by https with the authority's certificate alone, names checked."""
    server = make_server()
    server.scheme = "https"
    try:
        server.start("--lan")
        assert server.status("/certificate/") == 200
        assert server.status("/certificate/authority.crt") == 200
        assert server.status("/healthz") == 200
    finally:
        server.stop()
        shutil.rmtree(server.data_dir, ignore_errors=True)
