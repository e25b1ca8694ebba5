"""Waiting for what nothing tells a test: that another process got somewhere."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest


def wait_until(holds: Callable[[], object], *, timeout_s: float, what: str) -> float:
    """Poll until `holds`; seconds it took. Fails the test with `what`."""
    started = time.monotonic()
    while time.monotonic() - started < timeout_s:
        if holds():
            return time.monotonic() - started
        time.sleep(0.05)
    pytest.fail(f"not within {timeout_s:.0f} s: {what}")
