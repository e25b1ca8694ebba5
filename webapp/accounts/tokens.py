"""The tokens of tools: making and revoking them, and whom one stands for.

Every road with a token asks here. What a token may do is bounded twice: by its scopes, and by the
rights of the person or service account behind it.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from webapp.accounts.audit import note_token, record_act
from webapp.accounts.models import Act, ApiToken, Role, Scope, User
from webapp.accounts.signals import tell_rights_changed

USE_IS_NOTED_EVERY: Final = timedelta(minutes=5)
"""A busy tool must not write a row with every request."""


def token_of_secret(secret: str) -> ApiToken | None:
    """The valid token with this secret, its `user` at hand, and note that it was used.

    None for one that is unknown, revoked or expired, or whose person is disabled.
    """
    now = timezone.now()
    token = (
        ApiToken.objects.select_related("user")
        .filter(sha256=ApiToken.hash_secret(secret), user__is_active=True, revoked_at=None)
        .filter(Q(expires_at=None) | Q(expires_at__gt=now))
        .first()
    )
    if token is not None:
        note_token(token.name)
        if token.last_used_at is None or token.last_used_at < now - USE_IS_NOTED_EVERY:
            _note_use(token, now)
    return token


def may_monitor(secret: str) -> bool:
    """Whether this token may read metrics and the details of readiness."""
    token = token_of_secret(secret)
    return (
        token is not None
        and token.allows(Scope.MONITOR)
        and Scope.MONITOR in scopes_open_to(token.user)
    )


def scopes_open_to(user: User) -> list[Scope]:
    """What a token of `user` can be good for at all: the rest needs rights that `user` lacks."""
    closed = set()
    if not user.is_administrator:
        closed.add(Scope.ADMINISTRATION)
        if user.role != Role.SERVICE:
            closed.add(Scope.MONITOR)
    return [scope for scope in Scope if scope not in closed]


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """The latest first, also those that lead nowhere any more."""
    return ApiToken.objects.filter(user=user).order_by("-created_at", "-pk")


def make_token(
    *,
    user: User,
    name: str,
    scopes: Collection[Scope],
    expires_at: datetime | None,
    made_by: User | None,
) -> tuple[ApiToken, str]:
    """A token for a tool of `user`, and its secret, which is stored nowhere.

    `made_by` is None on the command line. Raises ValueError for no scope, or one that is not open
    to `user`.
    """
    if not scopes or not set(scopes) <= set(scopes_open_to(user)):
        raise ValueError("a token has scopes, each open to its person")
    with transaction.atomic():
        token, secret = ApiToken.issue(
            user=user, name=name[:100], scopes=scopes, expires_at=expires_at
        )
        record_act(
            act=Act.TOKEN_MADE,
            actor=made_by,
            on=token,
            detail={"owner": user.email, "scopes": " ".join(token.scopes)},
        )
    return token, secret


def revoke_token(*, token: ApiToken, revoked_by: User) -> None:
    """From now on it opens nothing, and what it holds open closes. Harmless where it was before."""
    with transaction.atomic():
        if ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now()):
            record_act(
                act=Act.TOKEN_REVOKED,
                actor=revoked_by,
                on=token,
                detail={"owner": token.user.email},
            )
            tell_rights_changed(user_id=token.user_id)


def _note_use(token: ApiToken, now: datetime) -> None:
    """Of two requests at once one notes it."""
    with transaction.atomic():
        if (
            ApiToken.objects.filter(pk=token.pk)
            .filter(Q(last_used_at=None) | Q(last_used_at__lt=now - USE_IS_NOTED_EVERY))
            .update(last_used_at=now)
        ):
            record_act(act=Act.TOKEN_USED, actor=token.user, on=token)
