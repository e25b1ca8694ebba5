"""People and tokens in Django's admin."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.db.models import QuerySet
from django.http import HttpRequest

from webapp.accounts.models import ApiToken, Role, User


class PersonCreationForm(AdminUserCreationForm[User]):
    class Meta:
        model = User
        fields = ("email", "name", "role")


class PersonChangeForm(UserChangeForm[User]):
    class Meta:
        model = User
        fields = ("email", "name", "time_zone")


@admin.register(User)
class PersonAdmin(UserAdmin[User]):
    """Makes people and mends their names and addresses.

    Roles and disabling have a page in the administration, which looks after the last administrator
    and ends sessions.
    """

    form = PersonChangeForm
    add_form = PersonCreationForm
    list_display = ("email", "name", "role", "is_active", "last_login")
    list_filter = ("role", "is_active")
    search_fields = ("email", "name")
    ordering = ("email",)
    readonly_fields = ("role", "is_active", "last_login", "date_joined")
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("email", "password")}),
        ("Person", {"fields": ("name", "time_zone")}),
        ("Rights", {"fields": ("role", "is_active")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (
        (
            None,
            {"fields": ("email", "name", "role", "usable_password", "password1", "password2")},
        ),
    )

    def save_model(
        self, request: HttpRequest, obj: User, form: forms.ModelForm[User], change: bool
    ) -> None:
        if not change:
            obj.is_staff = obj.is_superuser = obj.role == Role.ADMINISTRATOR
        super().save_model(request, obj, form, change)

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> list[str]:
        fields = super().get_readonly_fields(request, obj)
        return [str(name) for name in fields if obj or name != "role"]

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
