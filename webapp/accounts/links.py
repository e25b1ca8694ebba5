"""Links by which a person chooses a password, for an administrator to hand over.

A link is a secret until it is used or three days old: show it to whom it concerns, never log it.
"""

from __future__ import annotations

from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from django.urls import reverse

from webapp.accounts.models import User
from webapp.config import site_settings


def password_link(*, user: User) -> str:
    """A whole address where `user` chooses a new password. The old one works until then."""
    path = reverse(
        "account_reset_password_from_key",
        kwargs={
            "uidb36": user_pk_to_url_str(user),
            "key": default_token_generator.make_token(user),
        },
    )
    return site_settings().site_url + path
