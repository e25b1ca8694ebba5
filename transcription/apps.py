"""The product's one Django app."""

from __future__ import annotations

from django.apps import AppConfig


class TranscriptionConfig(AppConfig):
    name = "transcription"
    verbose_name = "Transcription"

    def ready(self) -> None:
        from transcription import checks  # noqa: F401  # registers the system checks
