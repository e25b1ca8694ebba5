"""Addresses of the administration, below `administration/`."""

from __future__ import annotations

from transcription.pages.administration import audit, overview, people, teams, tools

urlpatterns = [
    *overview.urlpatterns,
    *audit.urlpatterns,
    *people.urlpatterns,
    *teams.urlpatterns,
    *tools.urlpatterns,
]
