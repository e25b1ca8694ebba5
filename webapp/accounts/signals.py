"""What accounts tell whoever listens: this module imports nothing of the product."""

from __future__ import annotations

from functools import partial
from typing import Final

from django.db import transaction
from django.dispatch import Signal

rights_changed: Final = Signal()
"""Sent with `user_id` after the commit: this person may do less, or else, than before, so that what
they hold open (sockets) must ask again. Disabled, role or password changed, sessions ended, logged
out, joined or left a team."""


def tell_rights_changed(*, user_id: int) -> None:
    """Send `rights_changed` once the transaction holds; a deaf listener undoes nothing."""
    transaction.on_commit(partial(rights_changed.send_robust, None, user_id=user_id))
