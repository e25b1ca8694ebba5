"""Links by which anybody who has the address reads the captions of one live session.

Whoever guesses is slowed down by address; every making, opening and end leaves a line in the log,
which never holds a token.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Final

import structlog
from django.conf import settings
from django.core.cache import cache
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
from transcription.models import LiveSession, ShareLink

log = structlog.get_logger(__name__)

TOKEN_BYTES: Final = 16
LIFETIMES: Final[dict[int, str]] = {4: "4 hours", 24: "1 day", 24 * 7: "1 week"}
"""What a link's maker may choose, by hours."""
MAX_OPEN_LINKS: Final = 20
"""Of one session."""
MAX_WRONG_TOKENS: Final = 30
"""From one address within WRONG_TOKENS_FOR_S; after that every token from there is refused."""
WRONG_TOKENS_FOR_S: Final = 600


def create_caption_link(*, session: LiveSession, hours: int) -> tuple[ShareLink, str]:
    """Make a link; the second value is its token, which is stored nowhere.

    Raises ConflictError, InvalidInputError.
    """
    if not settings.SITE.share_links:
        raise ConflictError("Links to captions are switched off on this server.")
    if hours not in LIFETIMES:
        raise InvalidInputError("Choose for how long the link is open.")
    now = timezone.now()
    links = ShareLink.objects.filter(session=session, revoked_at=None, expires_at__gt=now)
    if links.count() >= MAX_OPEN_LINKS:
        raise ConflictError(
            f"This session has {MAX_OPEN_LINKS} open links already. Withdraw one of them first."
        )
    token = secrets.token_urlsafe(TOKEN_BYTES)
    link = ShareLink.objects.create(
        session=session,
        sha256=ShareLink.hash_token(token),
        created_at=now,
        expires_at=now + timedelta(hours=hours),
    )
    log.info("caption_link_created", link=str(link.id), session=str(session.id), hours=hours)
    return link, token


def revoke_caption_link(*, link: ShareLink) -> None:
    """It leads nowhere from now on, and those who read by it are sent away within seconds.

    Harmless for a link that was withdrawn already.
    """
    open_links = ShareLink.objects.filter(id=link.id, revoked_at=None)
    if open_links.update(revoked_at=timezone.now()):
        log.info("caption_link_revoked", link=str(link.id), session=str(link.session_id))
    links_changed_on_commit(link.live_session.id)


def open_caption_link(*, token: str, address: str) -> ShareLink:
    """The link of `token`, for a reader of its session at the network `address`.

    Raises NotFoundError, which says why, and TooFastError where too many wrong tokens came from
    there: then no token of theirs is looked at.
    """
    key = f"wrong-links:{address}"
    if _count(key) >= MAX_WRONG_TOKENS:
        raise TooFastError("Too many wrong links were opened from your network. Wait ten minutes.")
    try:
        link = selectors.access_caption_link_by_token(token)
    except UnknownLinkError:
        _note(key)
        log.warning("caption_link_unknown", address=address)
        raise
    except NotFoundError:
        log.info("caption_link_refused", address=address)
        raise
    return link


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
