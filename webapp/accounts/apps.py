"""The accounts app."""

from __future__ import annotations

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "webapp.accounts"
    label = "accounts"
    verbose_name = "People"

    def ready(self) -> None:
        from webapp.accounts.sign_in_audit import connect_signals

        connect_signals()
