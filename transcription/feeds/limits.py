"""Which limits hold for whom (`TRANSCRIBE_MAX_*`), and what who meets one is told."""

from __future__ import annotations

from transcription.errors import TooManySessionsError, TooManyViewersError
from transcription.feeds.places import Limit
from webapp.config import site_settings


def capture_limits(owner_id: int) -> tuple[Limit, ...]:
    site = site_settings()
    return (
        Limit("captures", site.max_sessions, TooManySessionsError()),
        Limit(
            f"captures:{owner_id}",
            site.max_sessions_per_person,
            TooManySessionsError.of_person(site.max_sessions_per_person),
        ),
    )


def viewer_limits(session: str) -> tuple[Limit, ...]:
    site = site_settings()
    return (
        Limit("viewers", site.max_viewers, TooManyViewersError()),
        Limit(
            f"viewers:{session}",
            site.max_viewers_per_session,
            TooManyViewersError.of_session(site.max_viewers_per_session),
        ),
    )
