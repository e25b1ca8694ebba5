"""Who a token belongs to: the one place that every road with a token asks."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db.models import Q
from django.utils import timezone

from webapp.accounts.models import ApiToken, User

USE_IS_NOTED_EVERY: Final = timedelta(minutes=5)
"""A busy tool must not write a row with every request."""


def user_of_token(secret: str) -> User | None:
    """The active person behind `secret`; None for an unknown or expired token."""
    now = timezone.now()
    token = (
        ApiToken.objects.select_related("user")
        .filter(sha256=ApiToken.hash_secret(secret), user__is_active=True)
        .filter(Q(expires_at=None) | Q(expires_at__gt=now))
        .first()
    )
    if token is None:
        return None
    ApiToken.objects.filter(pk=token.pk).filter(
        Q(last_used_at=None) | Q(last_used_at__lt=now - USE_IS_NOTED_EVERY)
    ).update(last_used_at=now)
    return token.user
