"""How allauth behaves here."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.stagekit import clear_login
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from webapp.accounts.backends import may_log_in


class AccountAdapter(DefaultAccountAdapter):
    """Administrators make accounts; allauth's own sign-up stays closed (see `sign_up`)."""

    error_messages = DefaultAccountAdapter.error_messages | {
        "email_password_mismatch": "This address and this password do not belong together. "
        "Check both and try again.",
        "too_many_login_attempts": "Too many attempts failed. Wait five minutes, then try again.",
        "enter_current_password": "This is not your current password.",
        "incorrect_password": "This is not your password.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def pre_login(
        self, request: HttpRequest, user: AbstractBaseUser, **kwargs: Any
    ) -> HttpResponse | None:
        """Every road of allauth comes through here: password, passkey, single sign-on."""
        refusal: HttpResponse | None = super().pre_login(request, user, **kwargs)
        if refusal is None and not may_log_in(user):
            clear_login(request)
            refusal = self.respond_user_inactive(request, user)
        return refusal

    def get_reauthentication_methods(self, user: Any) -> list[dict[str, Any]]:
        words = {
            "reauthenticate": "By my password",
            "mfa_reauthenticate": "By a code",
            "mfa_reauthenticate:webauthn": "By a passkey or security key",
        }
        methods: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        return [{**method, "description": words[method["id"]]} for method in methods]

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("profile")
