"""Who reads a recording or a live session, in the few words that its page and the lists have room
for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from transcription import selectors
from transcription.models import LiveSession, Recording, Visibility
from webapp.accounts.models import User

NAMED: Final = 2
SHOWN_OPENINGS: Final = 5


@dataclass(frozen=True, slots=True)
class Audience:
    """`icon` is the name of one."""

    icon: str
    words: str


def audience_context(user: User, thing: Recording | LiveSession) -> dict[str, Any]:
    """What `sharing/opened.html` and `sharing/openings.html` need, and the `audience` in words."""
    opened = selectors.current_opening(user, thing)
    return {
        "thing": thing,
        "kind": "recordings" if isinstance(thing, Recording) else "live",
        "opened": opened,
        "openings": selectors.openings_shown_to(user, thing)[:SHOWN_OPENINGS],
        "audience": _audience(user, thing, is_opened=opened is not None),
    }


def is_for_everybody(thing: Recording | LiveSession) -> bool:
    if isinstance(thing, Recording):
        return thing.is_organisation_wide
    return thing.visibility == Visibility.ORGANISATION


def _audience(user: User, thing: Recording | LiveSession, *, is_opened: bool) -> Audience:
    is_owner = thing.owner_id == user.pk
    guests = ", and whoever has the link" if is_owner and selectors.has_open_link(thing) else ""
    if is_for_everybody(thing):
        return Audience("users", f"Everybody who can log in{guests}")
    if is_opened:
        return Audience("lock", "Not shared with you")
    if not is_owner:
        return Audience("users", "Shared with you")
    shares = list(thing.shares.select_related("person", "team"))
    if not shares:
        return Audience("link" if guests else "lock", f"Only you{guests}")
    names = [str(share.person or share.team) for share in shares[:NAMED]]
    if more := len(shares) - len(names):
        names.append(f"{more} more")
    return Audience("users", f"Shared with {_listed(names)}{guests}")


def _listed(names: list[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
