"""Single sign-on by OpenID Connect: who may come in, and as whom.

A person is known by the provider's subject; the first time by an address that the provider vouches
for. Without an account one is made where `sign_up_domains` opens the door.
"""

from __future__ import annotations

from typing import Any, NoReturn

import structlog
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from allauth.socialaccount.providers.base.constants import AuthProcess
from allauth.socialaccount.providers.openid_connect.views import login as begin
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from requests import RequestException

from webapp.accounts.audit import record_act
from webapp.accounts.backends import may_log_in
from webapp.accounts.models import Act, User

log = structlog.get_logger(__name__)


def may_sign_up(address: str) -> bool:
    """Whether whoever owns this address may have an account without an invitation."""
    domains: list[str] = settings.SITE.open_domains
    return address.rpartition("@")[2].lower() in domains


def log_in(request: HttpRequest, provider_id: str) -> HttpResponse:
    """To the provider's log-in page, or to a page that says that it does not answer."""
    try:
        answer: HttpResponse = begin(request, provider_id)
    except (RequestException, KeyError) as error:
        log.warning("single_sign_on_failed", error=type(error).__name__)
        return _failed(request, status=503)
    return answer


class SingleSignOnAdapter(DefaultSocialAccountAdapter):
    """allauth's, where it decides."""

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """The provider knows who this is; say whose account it is."""
        if sociallogin.state.get("process") == AuthProcess.CONNECT:
            # Who comes in is decided by address: no account is tied to another by hand.
            raise ImmediateHttpResponse(redirect("profile"))
        if sociallogin.is_existing:
            return
        address = next((each.email for each in sociallogin.email_addresses if each.verified), "")
        if not address:
            _refuse(request)
        person = User.objects.filter(email__iexact=address).first()
        if person is not None:
            if not may_log_in(person):
                raise ImmediateHttpResponse(redirect("account_inactive"))
            sociallogin.connect(request, person)

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return may_sign_up(sociallogin.user.email)

    def populate_user(
        self, request: HttpRequest, sociallogin: SocialLogin, data: dict[str, Any]
    ) -> User:
        person: User = sociallogin.user
        address = next((each.email for each in sociallogin.email_addresses if each.verified), "")
        person.email = User.objects.normalize_email(address)
        person.name = str(data.get("name") or "")[:150]
        return person

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> User:
        person: User = super().save_user(request, sociallogin, form)
        record_act(act=Act.INVITED, actor=None, on=person, detail={"by": "single sign-on"})
        return person

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Any = None,
        **_: Any,
    ) -> None:
        """Its text could quote what the provider sent, so only its kind is logged."""
        kind = type(exception).__name__ if exception else str(error or "no state")
        log.warning("single_sign_on_failed", error=kind)


def _refuse(request: HttpRequest) -> NoReturn:
    log.info("single_sign_on_refused", reason="address is not vouched for")
    raise ImmediateHttpResponse(render(request, "socialaccount/not_vouched_for.html", status=403))


def _failed(request: HttpRequest, status: int) -> HttpResponse:
    return render(request, "socialaccount/authentication_error.html", status=status)
