"""A session survives whatever dies: every final once, in order, with nothing missing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.chaos.speaker import WELL
from tests.chaos.storm import NETWORK_FAILURES, PROCESSES, make_token, plan, ride_out
from tests.e2e.conftest import Server, make_server

SECONDS = 14.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A whole server with scripted models, for all seeds: it gets up again after each."""
    server = make_server()
    server.start()
    server.wait_ready()
    yield server
    server.stop()
    shutil.rmtree(server.data_dir, ignore_errors=True)


@pytest.fixture(scope="module")
def token(server: Server) -> str:
    return make_token(server)


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_every_final_comes_once_and_in_order_whatever_dies(
    server: Server, token: str, seed: int
) -> None:
    """More seeds: `python -m tests.chaos.storm --seeds N`."""
    assert await ride_out(server, token, seed, SECONDS) == WELL


def test_a_seed_is_a_storm_of_its_own_that_can_be_had_again() -> None:
    storms = [tuple(plan(seed, SECONDS)) for seed in range(1, 50)]
    assert len(set(storms)) == len(storms)
    assert storms == [tuple(plan(seed, SECONDS)) for seed in range(1, 50)]
    for storm in storms:
        assert {blow.what for blow in storm} == {*PROCESSES, *NETWORK_FAILURES}
