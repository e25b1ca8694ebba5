"""Signing up by oneself, where an administrator opened that for addresses of named domains.

Whoever asks gets a mail with the link to choose a password, which proves the address; the page says
the same to everybody, whether the address is known, new or of no open domain.
"""

from __future__ import annotations

import contextlib

from allauth.account.forms import ResetPasswordForm
from allauth.core import ratelimit
from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from webapp.accounts import people
from webapp.accounts.errors import PeopleError
from webapp.accounts.models import User
from webapp.accounts.single_sign_on import may_sign_up


def is_open() -> bool:
    """Without mail nobody could prove their address; single sign-on proves it by itself."""
    site = settings.SITE
    return bool(site.open_domains and site.email_url)


class SignUpForm(forms.Form):
    email = forms.EmailField(
        label="E-mail address",
        max_length=254,
        widget=forms.EmailInput({"autocomplete": "email", "autofocus": True}),
    )
    name = forms.CharField(
        label="Name",
        max_length=150,
        required=False,
        widget=forms.TextInput({"autocomplete": "name"}),
    )


@never_cache
@require_http_methods(["GET", "POST"])
def sign_up(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated:
        return redirect("home")
    if not is_open():
        return render(request, "account/signup_closed.html")
    form = SignUpForm(request.POST or None)
    if request.method == "GET" or not form.is_valid():
        context = {"form": form, "domains": settings.SITE.open_domains}
        return render(request, "account/signup.html", context, status=400 if form.errors else 200)
    refusal: HttpResponse | None = ratelimit.consume_or_429(request, action="signup")
    if refusal is not None:
        return refusal
    address = form.cleaned_data["email"]
    if may_sign_up(address):
        _let_in(request, address, form.cleaned_data["name"])
    return redirect("account_reset_password_done")


def _let_in(request: HttpRequest, address: str, name: str) -> None:
    if not User.objects.filter(email__iexact=address).exists():
        # Where somebody was quicker they get the mail all the same.
        with contextlib.suppress(PeopleError):
            people.invite_person(email=address, name=name, invited_by=None)
    mail = ResetPasswordForm({"email": address})
    if mail.is_valid():
        mail.save(request)
