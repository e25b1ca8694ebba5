"""Addresses of the administration, below `administration/`."""

from __future__ import annotations

from transcription.pages.administration import overview, people, teams, tools

urlpatterns = [
    *overview.urlpatterns,
    *people.urlpatterns,
    *teams.urlpatterns,
    *tools.urlpatterns,
]
