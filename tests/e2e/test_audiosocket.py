"""Calls of a telephone exchange through `manage.py audiosocket`, one killed in the middle."""

from __future__ import annotations

from tests.e2e.conftest import Server
from tests.load.audiosocket_calls import run_calls


def test_a_killed_call_leaves_the_others_whole(server: Server) -> None:
    result = run_calls(server, calls=3, words=16, cut_after_s=2.5)
    assert (result["right"], result["wrong"], result["bridge_exit"]) == (2, 0, 0)
    assert result["killed_is_a_beginning"]
