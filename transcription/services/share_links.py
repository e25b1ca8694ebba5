"""Links by which anybody who has the address reads the captions of one live session, or one
recording, without logging in.

Whoever guesses is slowed down by address; every making, opening and end leaves a line in the log,
which never holds a token. People who log in: see `sharing`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import structlog
from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.utils import timezone
from redis.exceptions import RedisError

from transcription import selectors
from transcription.broadcast import links_changed_on_commit
from transcription.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    TooFastError,
    UnknownLinkError,
)
from transcription.models import LiveSession, Recording, ShareLink
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act, User

log = structlog.get_logger(__name__)

TOKEN_BYTES: Final = 16
CAPTION_LIFETIMES: Final[dict[int, str]] = {4: "4 hours", 24: "1 day", 24 * 7: "1 week"}
RECORDING_LIFETIMES: Final[dict[int, str]] = {24: "1 day", 24 * 7: "1 week", 24 * 30: "30 days"}
"""What a link's maker may choose, by hours."""
MAX_OPEN_LINKS: Final = 20
"""Of one session, or one recording."""
MAX_WRONG_TOKENS: Final = 30
"""From one address within WRONG_TOKENS_FOR_S; after that every token from there is refused."""
WRONG_TOKENS_FOR_S: Final = 600


def lifetimes_of(thing: LiveSession | Recording) -> dict[int, str]:
    return RECORDING_LIFETIMES if isinstance(thing, Recording) else CAPTION_LIFETIMES


def create_share_link(
    *, thing: LiveSession | Recording, hours: int, made_by: User
) -> tuple[ShareLink, str]:
    """Make a link; the second value is its token, which is stored nowhere.

    Raises ConflictError, InvalidInputError.
    """
    if not settings.SITE.share_links:
        raise ConflictError("Links are switched off on this server.")
    if hours not in lifetimes_of(thing):
        raise InvalidInputError("Choose for how long the link is open.")
    now = timezone.now()
    if thing.links.filter(revoked_at=None, expires_at__gt=now).count() >= MAX_OPEN_LINKS:
        raise ConflictError(
            f"There are {MAX_OPEN_LINKS} open links to this already. Withdraw one of them first."
        )
    token = secrets.token_urlsafe(TOKEN_BYTES)
    with transaction.atomic():
        link = thing.links.create(
            sha256=ShareLink.hash_token(token),
            created_at=now,
            expires_at=now + timedelta(hours=hours),
        )
        record_act(act=Act.LINK_MADE, actor=made_by, on=thing, detail={"hours": hours})
    log.info("share_link_created", link=str(link.id), leads_to=str(thing.id), hours=hours)
    return link, token


def revoke_share_link(*, link: ShareLink, revoked_by: User) -> None:
    """It leads nowhere from now on, and those who read by it are sent away within seconds.

    Harmless for a link that was withdrawn already.
    """
    open_links = ShareLink.objects.filter(id=link.id, revoked_at=None)
    with transaction.atomic():
        if open_links.update(revoked_at=timezone.now()):
            record_act(act=Act.LINK_WITHDRAWN, actor=revoked_by, on=link.thing)
            log.info("share_link_revoked", link=str(link.id), leads_to=str(link.thing.id))
        links_changed_on_commit(link.thing.id)


def open_caption_link(*, token: str, address: str) -> ShareLink:
    """The link of `token`, for a reader of its session at the network `address`.

    Raises NotFoundError, which says why, and TooFastError where too many wrong tokens came from
    there: then no token of theirs is looked at.
    """
    link = _open(selectors.access_caption_link_by_token, token, address)
    record_act(act=Act.VIEWED, actor=None, on=link.session, detail={"by": "link"})
    return link


def open_recording_link(*, token: str, address: str) -> ShareLink:
    """The same for a reader of its recording."""
    return _open(selectors.access_recording_link_by_token, token, address)


def _open(access: Callable[[str], ShareLink], token: str, address: str) -> ShareLink:
    key = f"wrong-links:{address}"
    if _count(key) >= MAX_WRONG_TOKENS:
        raise TooFastError("Too many wrong links were opened from your network. Wait ten minutes.")
    try:
        return access(token)
    except UnknownLinkError:
        _note(key)
        log.warning("share_link_unknown", address=address)
        raise
    except NotFoundError:
        log.info("share_link_refused", address=address)
        raise


# Without the broker nobody is slowed down: 128 bits are not guessed in that time.


def _count(key: str) -> int:
    try:
        return int(cache.get(key) or 0)
    except (RedisError, OSError):
        return 0


def _note(key: str) -> None:
    try:
        cache.add(key, 0, timeout=WRONG_TOKENS_FOR_S)
        cache.incr(key)
    except (RedisError, OSError, ValueError):  # ValueError: it ran out between the two
        return
