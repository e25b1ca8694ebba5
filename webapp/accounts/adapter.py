"""How allauth behaves here: nobody signs up by themselves."""

from __future__ import annotations

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest
from django.urls import reverse


class AccountAdapter(DefaultAccountAdapter):
    """Administrators make accounts; the sign-up page is closed."""

    error_messages = DefaultAccountAdapter.error_messages | {
        "email_password_mismatch": "This address and this password do not belong together. "
        "Check both and try again.",
        "too_many_login_attempts": "Too many attempts failed. Wait five minutes, then try again.",
        "enter_current_password": "This is not your current password.",
        "incorrect_password": "This is not your password.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("profile")
