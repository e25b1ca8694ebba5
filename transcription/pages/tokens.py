"""A person's tokens: keys by which their tools do what they may do themselves.

A secret is shown in the one answer that makes it; the page of service accounts
(`pages.administration.tools`) shares the form and the answer.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from transcription.errors import NotFoundError
from transcription.pages.requests import PersonRequest
from webapp.accounts.models import ApiToken, Role, Scope, User
from webapp.accounts.tokens import make_token, revoke_token, scopes_open_to, tokens_of

SHOWN_TOKENS: Final = 50
LIFETIMES: Final = {"30": "30 days", "90": "90 days", "365": "One year"}
NO_END: Final = {"": "Until it is revoked"}
"""For service accounts alone: what runs in the building for years is looked after by nobody."""


class TokenForm(forms.Form):
    """What a new token is for, what it may do, and for how long."""

    name = forms.CharField(
        label="What is it for?",
        max_length=100,
        help_text="By this name you will know it: “Meeting room recorder”.",
        widget=forms.TextInput({"autocomplete": "off"}),
    )
    scopes = forms.MultipleChoiceField(
        label="It may",
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one thing that it may do."},
    )
    lifetime = forms.ChoiceField(label="Valid for", initial="90", required=False)

    def __init__(self, *args: Any, owner: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.owner = owner
        self.fields["scopes"].choices = [  # type: ignore[attr-defined]
            (scope.value, scope.label) for scope in scopes_open_to(owner)
        ]
        is_service = owner.role == Role.SERVICE
        self.fields["lifetime"].choices = [  # type: ignore[attr-defined]
            *LIFETIMES.items(),
            *(NO_END.items() if is_service else ()),
        ]
        self.fields["lifetime"].required = not is_service

    def make(self, made_by: User) -> tuple[ApiToken, str]:
        """The token and its secret. The form is valid."""
        return make_token(
            user=self.owner,
            name=self.cleaned_data["name"],
            scopes=[Scope(value) for value in self.cleaned_data["scopes"]],
            expires_at=self._expires_at(),
            made_by=made_by,
        )

    def _expires_at(self) -> datetime | None:
        days = self.cleaned_data["lifetime"]
        return timezone.now() + timedelta(days=int(days)) if days else None


def tokens_context(request: PersonRequest, owner: User) -> tuple[dict[str, Any], int]:
    """What a page of `owner`'s tokens shows, and its status; a POST makes one."""
    form = TokenForm(request.POST or None, owner=owner)
    made: dict[str, object] | None = None
    if request.method == "POST" and form.is_valid():
        token, secret = form.make(request.user)
        made = {"token": token, "secret": secret}
        form = TokenForm(owner=owner)
    tokens = tokens_of(owner)[:SHOWN_TOKENS]
    context = {"owner": owner, "form": form, "made": made, "tokens": tokens}
    return context, 400 if form.errors else 200


def confirm_revocation(
    request: PersonRequest, token: ApiToken, *, template: str, back: str
) -> HttpResponse:
    """Ask, or, on POST, revoke `token` and go to the address `back`."""
    if request.method == "POST":
        revoke_token(token=token, revoked_by=request.user)
        messages.success(request, f"“{token.name}” is revoked. Whatever used it is refused now.")
        return redirect(back)
    return render(request, template, {"token": token, "back": back})


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def tokens(request: PersonRequest) -> HttpResponse:
    """Their own tokens, and a new one, whose secret only this answer has."""
    context, status = tokens_context(request, request.user)
    return render(request, "tokens/tokens.html", context, status=status)


@login_required
@require_http_methods(["GET", "POST"])
def token_revoke(request: PersonRequest, token_id: int) -> HttpResponse:
    token = tokens_of(request.user).select_related("user").filter(pk=token_id).first()
    if token is None:
        raise NotFoundError
    return confirm_revocation(request, token, template="tokens/revoke.html", back=reverse("tokens"))


urlpatterns = [
    path("profile/tokens/", tokens, name="tokens"),
    path("profile/tokens/<int:token_id>/revoke/", token_revoke, name="token_revoke"),
]
