"""A clock that stands until a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

NIGHT = datetime(2027, 3, 2, 2, 0, tzinfo=UTC)
DAY = timedelta(days=1)
MOMENT = timedelta(microseconds=1)


class Clock:
    """What `timezone.now()` says; it begins at the moment of a night's purge."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = NIGHT
        monkeypatch.setattr(timezone, "now", lambda: self.now)

    def move(self, by: timedelta) -> datetime:
        self.now += by
        return self.now
