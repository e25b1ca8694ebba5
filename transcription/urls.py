"""Addresses of the product."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("transcription.api.urls")),
    path("", include("transcription.pages.urls")),
]
