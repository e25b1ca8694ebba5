"""Addresses of the administration, below `administration/`."""

from __future__ import annotations

from transcription.pages.administration import (
    audit,
    engines,
    jobs,
    openings,
    overview,
    people,
    retention,
    storage,
    teams,
    tools,
)

urlpatterns = [
    *overview.urlpatterns,
    *audit.urlpatterns,
    *engines.urlpatterns,
    *jobs.urlpatterns,
    *openings.urlpatterns,
    *people.urlpatterns,
    *retention.urlpatterns,
    *storage.urlpatterns,
    *teams.urlpatterns,
    *tools.urlpatterns,
]
