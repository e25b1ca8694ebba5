"""Every address of the site."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("accounts/", include("allauth.urls")),
    path("", include("transcription.urls")),
]

handler400 = "transcription.pages.errors.bad_request"
handler403 = "transcription.pages.errors.permission_denied"
handler404 = "transcription.pages.errors.not_found"
handler500 = "transcription.pages.errors.server_error"
