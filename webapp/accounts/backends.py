"""Who may be logged in: the one rule that every road to a session asks, and every request again."""

from __future__ import annotations

from allauth.account.auth_backends import AuthenticationBackend
from django.contrib.auth.base_user import AbstractBaseUser

from webapp.accounts.models import Role, User


def may_log_in(user: AbstractBaseUser | None) -> bool:
    """Not the disabled, and never a service account, whatever password or passkey it came by."""
    return isinstance(user, User) and user.is_active and user.role != Role.SERVICE


class PeopleBackend(AuthenticationBackend):
    """allauth's log-in by address and password; Django asks it for the person of each session."""

    def user_can_authenticate(self, user: AbstractBaseUser | None) -> bool:
        return may_log_in(user)
