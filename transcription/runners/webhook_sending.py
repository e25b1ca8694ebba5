"""The chore that sends what webhooks are to be told: many at once, and one chore at a time.

A receiver that hangs holds one place for ten seconds; others go on beside it.
"""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Final

from django.core.cache import cache

from transcription.runners.webhook_requests import post
from transcription.services.webhook_deliveries import (
    Dispatch,
    Outcome,
    claim_deliveries,
    note_outcome,
)

PLACES: Final = 16
RUN_S: Final = 45.0
"""A chore goes on so long while something is due; the beat starts the next one."""
LOOK_S: Final = 1.0
"""Between two looks for what became due while all that is under way waits for an answer."""
HELD_KEY: Final = "webhooks:sending"
HELD_S: Final = 15
"""Prolonged with every look; after a chore that was killed the next one waits so long."""


def send_webhooks() -> int:
    """Send what is due; how many attempts were made. Harmless while it runs elsewhere."""
    # Only against many threads of chores that wait for one deaf receiver: claims are safe alone.
    if not cache.add(HELD_KEY, "1", timeout=HELD_S):
        return 0
    try:
        return _send_due()
    finally:
        cache.delete(HELD_KEY)


def _send_due() -> int:
    running: dict[Future[Outcome], Dispatch] = {}
    last_look_s = time.monotonic() + RUN_S
    count = 0
    with ThreadPoolExecutor(PLACES, thread_name_prefix="webhook") as pool:
        while True:
            cache.touch(HELD_KEY, HELD_S)
            if time.monotonic() < last_look_s:
                busy = Counter(dispatch.webhook_id for dispatch in running.values())
                for dispatch in claim_deliveries(limit=PLACES - len(running), busy=busy):
                    running[pool.submit(post, dispatch)] = dispatch
                    count += 1
            if not running:
                return count
            done, _ = wait(running, timeout=LOOK_S, return_when=FIRST_COMPLETED)
            for future in done:
                note_outcome(dispatch=running.pop(future), outcome=future.result())
