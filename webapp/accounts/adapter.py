"""How allauth behaves here: nobody signs up by themselves."""

from __future__ import annotations

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class AccountAdapter(DefaultAccountAdapter):
    """Administrators make accounts; the sign-up page is closed."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False
