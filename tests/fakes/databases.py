"""The tests' own database, for processes that a test starts."""

from __future__ import annotations

from django.db import connection


def database_url() -> str:
    """The test's own database, as another process names it."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{settings['NAME']}"
    person = f"{settings['USER']}:{settings['PASSWORD']}"
    return f"postgres://{person}@{settings['HOST']}:{settings['PORT']}/{settings['NAME']}"
