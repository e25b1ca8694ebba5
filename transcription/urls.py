"""Addresses of the product."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("transcription.pages.urls")),
    path("", include("transcription.api.urls")),
]
