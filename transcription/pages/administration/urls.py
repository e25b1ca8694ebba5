"""Addresses of the administration, below `administration/`."""

from __future__ import annotations

from transcription.pages.administration import (
    audit,
    openings,
    overview,
    people,
    retention,
    teams,
    tools,
)

urlpatterns = [
    *overview.urlpatterns,
    *audit.urlpatterns,
    *openings.urlpatterns,
    *people.urlpatterns,
    *retention.urlpatterns,
    *teams.urlpatterns,
    *tools.urlpatterns,
]
