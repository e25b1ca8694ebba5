"""A media directory of its own for every test, and the messages that a test sends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import celery
import pytest
from pytest_django.fixtures import Settings


@pytest.fixture(autouse=True)
def media_dir(settings: Settings, tmp_path: Path) -> Path:
    directory = tmp_path / "media"
    directory.mkdir()
    settings.MEDIA_ROOT = directory
    return directory


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Celery messages of this test: the task's name and its arguments. Nothing reaches a queue."""
    messages: list[tuple[str, ...]] = []

    def send_task(self: celery.Celery, name: str, args: list[str], **options: Any) -> None:
        messages.append((name, *args))

    monkeypatch.setattr(celery.Celery, "send_task", send_task)
    return messages
