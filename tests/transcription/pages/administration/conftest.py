"""The administrator, a client of theirs, and a broker that is empty before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from redis import Redis

from webapp.config import site_settings

if TYPE_CHECKING:
    from django.test import Client

    from webapp.accounts.models import User


@pytest.fixture
def admin(administrator: User) -> User:
    return administrator


@pytest.fixture
def client(admin: User, client_of: Callable[[User | None], Client]) -> Client:
    """Of the administrator, whose log-in the log does not tell."""
    from webapp.accounts.models import AuditEntry

    client = client_of(admin)
    AuditEntry.objects.all().delete()
    return client


@pytest.fixture
def broker() -> Iterator[Redis]:
    with Redis.from_url(site_settings().broker_url) as broker:
        broker.flushdb()
        yield broker
        broker.flushdb()
