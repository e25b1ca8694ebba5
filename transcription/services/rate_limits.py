"""How many requests one caller may make in a minute: counters in the broker, for all web processes.

A window begins with a caller's first request and lasts a minute. Where the broker does not answer,
everybody may: a limit must not be one more thing that can fail.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final

from limits import RateLimitItemPerMinute
from limits.storage import RedisStorage
from limits.strategies import FixedWindowRateLimiter
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from webapp.accounts.models import User
from webapp.config import site_settings

WINDOW_S: Final = 60
REFUSED_TOKENS: Final = 60
"""In a minute, from one address. Guessing is hopeless anyway; a tool that goes on asking with an
old token is told to stop."""
FILES: Final = 1200
"""In a minute, of one person: a player asks for a range at each jump, and a mixing desk for
captions twice a second."""
PIECES: Final = 6000
"""In a minute, of one person: small pieces on a quick network."""
LINKED_FILES: Final = 6000
"""In a minute, from one address: a whole building may come from one."""
TIMEOUT_S: Final = 1.0


class Kind(StrEnum):
    """What is counted."""

    REQUEST = "request"
    """Of a person or service account, all their tokens together, to the REST API."""
    FILE = "file"
    """Of the same: for audio and its waveform, downloads, captions as text."""
    PIECE = "piece"
    """Of the same: what the tus protocol asks."""
    LINKED_FILE = "linked_file"
    """From a network address: for what FILE counts, behind a link."""
    REFUSED_TOKEN = "refused_token"  # noqa: S105  # no secret
    """From a network address."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a caller has left: `remaining` of `limit` requests until `reset_s` seconds from now."""

    limit: int
    remaining: int
    reset_s: int
    is_spent: bool
    """This request was one too many."""


def person(user: User) -> str:
    """Who asks, as `take` wants it."""
    return f"user.{user.pk}"


def address(remote_address: str) -> str:
    """From where somebody unknown asks, as `take` wants it."""
    return f"address.{remote_address}"


def take(who: str, kind: Kind) -> Allowance:
    """Count one request of `who`. Synchronous: asks the broker."""
    most = _most(kind)
    item = RateLimitItemPerMinute(most, namespace=kind)
    limiter = _limiter()
    try:
        is_spent = not limiter.hit(item, who)
        stats = limiter.get_window_stats(item, who)
    except RedisError:
        return Allowance(limit=most, remaining=most, reset_s=WINDOW_S, is_spent=False)
    left_s = math.ceil(stats.reset_time - time.time())
    return Allowance(
        limit=most,
        remaining=max(0, stats.remaining),
        reset_s=min(WINDOW_S, max(1, left_s)),
        is_spent=is_spent,
    )


def _most(kind: Kind) -> int:
    match kind:
        case Kind.REQUEST:
            return site_settings().api_requests_per_minute
        case Kind.FILE:
            return FILES
        case Kind.PIECE:
            return PIECES
        case Kind.LINKED_FILE:
            return LINKED_FILES
        case Kind.REFUSED_TOKEN:
            return REFUSED_TOKENS


@cache
def _limiter() -> FixedWindowRateLimiter:
    storage = RedisStorage(
        site_settings().broker_url,
        key_prefix="limits",
        socket_timeout=TIMEOUT_S,
        socket_connect_timeout=TIMEOUT_S,
        retry=Retry(NoBackoff(), 0),  # type: ignore[arg-type]  # passed on to redis-py as it is
    )
    return FixedWindowRateLimiter(storage)
