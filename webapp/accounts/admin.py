"""People and tokens in Django's admin."""

from __future__ import annotations

from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from webapp.accounts.models import ApiToken, User

# Keys to people's accounts are nobody's to read, and what changes who gets in has one road, which
# audits it: `accounts.people`, behind the administration's page of people.
for model in (Authenticator, EmailAddress, SocialAccount, SocialApp, SocialToken, UserSession):
    admin.site.unregister(model)


@admin.register(User)
class PersonAdmin(admin.ModelAdmin[User]):
    """People, to look at."""

    list_display = ("email", "name", "role", "is_active", "last_login")
    list_filter = ("role", "is_active")
    search_fields = ("email", "name")
    ordering = ("email",)
    fields = ("email", "name", "time_zone", "role", "is_active", "last_login", "date_joined")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """People are disabled, not deleted: deleting would take their recordings along."""
        return False


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin[ApiToken]):
    """Who has which token, to look at: the page Tools makes and revokes them, and says so in the
    audit log."""

    list_display = (
        "name",
        "prefix",
        "user",
        "created_at",
        "expires_at",
        "last_used_at",
        "revoked_at",
    )
    search_fields = ("name", "user__email")
    ordering = ("-created_at",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiToken]:
        return super().get_queryset(request).select_related("user")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
