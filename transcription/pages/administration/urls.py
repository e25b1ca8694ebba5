"""Addresses of the administration, below `administration/`."""

from __future__ import annotations

from transcription.pages.administration import overview

urlpatterns = [
    *overview.urlpatterns,
]
