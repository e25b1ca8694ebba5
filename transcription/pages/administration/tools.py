"""Tools: service accounts and their tokens, and the tokens that people gave to theirs."""

from __future__ import annotations

from typing import Final

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from transcription.errors import NotFoundError
from transcription.pages.administration import administrators_only
from transcription.pages.requests import PersonRequest
from transcription.pages.tokens import confirm_revocation, tokens_context
from transcription.services.space import space_of
from webapp.accounts.errors import PeopleError
from webapp.accounts.models import ApiToken, Role, User
from webapp.accounts.people import disable_person, enable_person
from webapp.accounts.service_accounts import make_service_account, service_accounts

TOKENS_A_PAGE: Final = 50


class ServiceAccountForm(forms.Form):
    """A new tool of the organisation."""

    name = forms.CharField(
        label="Name",
        max_length=150,
        help_text="Shown as the owner of what it records: “Telephone exchange”.",
        widget=forms.TextInput({"autocomplete": "off"}),
    )


@administrators_only
@require_http_methods(["GET", "POST"])
def tools(request: PersonRequest) -> HttpResponse:
    """The service accounts, a new one, and the valid and former tokens of people."""
    form = ServiceAccountForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            account = make_service_account(name=form.cleaned_data["name"], made_by=request.user)
        except PeopleError as error:
            form.add_error("name", error.text)
        else:
            messages.success(request, f"“{account}” is made. Now give it a token.")
            return redirect("administration_tools_account", account.pk)
    tokens = (
        ApiToken.objects.exclude(user__role=Role.SERVICE)
        .select_related("user")
        .order_by("-created_at", "-pk")
    )
    context = {
        "form": form,
        "accounts": service_accounts(),
        "page": Paginator(tokens, TOKENS_A_PAGE).get_page(request.GET.get("page")),
    }
    status = 400 if form.errors else 200
    return render(request, "administration/tools.html", context, status=status)


@administrators_only
@never_cache
@require_http_methods(["GET", "POST"])
def account(request: PersonRequest, account_id: int) -> HttpResponse:
    """One service account's tokens, and a new one, whose secret only this answer has."""
    owner = _account(account_id)
    context, status = tokens_context(request, owner)
    context["space"] = space_of(owner)
    return render(request, "administration/tool.html", context, status=status)


@administrators_only
@require_POST
def account_state(request: PersonRequest, account_id: int) -> HttpResponse:
    """Disable a service account with all its tokens, or enable it again."""
    account = _account(account_id)
    if "enable" in request.POST:
        enable_person(person=account, enabled_by=request.user)
        messages.success(request, f"“{account}” is enabled. Its tokens are good again.")
    else:
        disable_person(person=account, disabled_by=request.user)
        messages.success(request, f"“{account}” is disabled. Its tokens are refused now.")
    return redirect("administration_tools_account", account.pk)


@administrators_only
@require_http_methods(["GET", "POST"])
def token_revoke(request: PersonRequest, token_id: int) -> HttpResponse:
    """Of a service account, or of a person whose tool must stop."""
    token = ApiToken.objects.select_related("user").filter(pk=token_id).first()
    if token is None:
        raise NotFoundError
    back = (
        reverse("administration_tools_account", args=[token.user_id])
        if token.user.role == Role.SERVICE
        else reverse("administration_tools")
    )
    return confirm_revocation(
        request, token, template="administration/tools_revoke.html", back=back
    )


def _account(account_id: int) -> User:
    account = service_accounts().filter(pk=account_id).first()
    if account is None:
        raise NotFoundError
    return account


urlpatterns = [
    path("tools/", tools, name="administration_tools"),
    path("tools/<int:account_id>/", account, name="administration_tools_account"),
    path("tools/<int:account_id>/state/", account_state, name="administration_tools_state"),
    path("tools/tokens/<int:token_id>/revoke/", token_revoke, name="administration_tools_revoke"),
]
