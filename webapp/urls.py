"""Every address of the site."""

from __future__ import annotations

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from webapp.accounts import single_sign_on
from webapp.accounts.sign_up import sign_up
from webapp.certificate import authority_certificate, certificate_page
from webapp.health import healthz, metrics, readyz

# Its own log-in page would ask for no second factor and slow no guessing down.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

urlpatterns = [
    path("healthz", healthz),
    path("readyz", readyz),
    path("metrics", metrics),
    path("admin/", admin.site.urls),
    path("certificate/", certificate_page, name="certificate"),
    path("certificate/authority.crt", authority_certificate, name="authority_certificate"),
    path("accounts/signup/", sign_up, name="account_signup"),
    path("accounts/oidc/<slug:provider_id>/login/", single_sign_on.log_in),
    # Addresses and their ties to a provider are not for people to change.
    path("accounts/email/", RedirectView.as_view(pattern_name="profile")),
    path("accounts/3rdparty/", RedirectView.as_view(pattern_name="profile")),
    path("accounts/3rdparty/signup/", RedirectView.as_view(pattern_name="account_login")),
    path("accounts/sessions/", RedirectView.as_view(pattern_name="profile")),
    path("accounts/", include("allauth.urls")),
    path("", include("transcription.urls")),
]

handler400 = "transcription.pages.errors.bad_request"
handler403 = "transcription.pages.errors.permission_denied"
handler404 = "transcription.pages.errors.not_found"
handler429 = "transcription.pages.errors.too_many_requests"  # read by allauth
handler500 = "transcription.pages.errors.server_error"
