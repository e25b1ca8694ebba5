"""Addresses that clients append to the base URL `https://HOST/v1`."""

from __future__ import annotations

from django.urls import path

from transcription.api.openai import views

urlpatterns = [
    path("v1/audio/transcriptions", views.create_transcription, name="openai_transcriptions"),
    path("v1/models", views.list_models, name="openai_models"),
    path("v1/models/<path:name>", views.read_model, name="openai_model"),
]
