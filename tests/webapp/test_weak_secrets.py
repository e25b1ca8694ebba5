"""Secrets that are none are found, and the web process does not start with one."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys

import pytest

from webapp.config import BASE_DIR, Settings, site_settings
from webapp.weak_secrets import weak_key, weak_passwords

STRONG = secrets.token_hex(24)


def with_(**values: object) -> Settings:
    return Settings.model_validate(site_settings().model_dump() | values)


@pytest.mark.parametrize(
    "key",
    ["", "short", "a" * 60, "change-me-" + STRONG, "django-insecure-" + STRONG],
    ids=["none", "short", "one letter", "placeholder", "unsafe"],
)
def test_weak_key_is_named_and_not_told(key: str) -> None:
    sentence = weak_key(with_(secret_key=key))
    assert "TRANSCRIBE_SECRET_KEY" in sentence
    assert not key or key not in sentence


@pytest.mark.parametrize(
    "key",
    [STRONG, secrets.token_urlsafe(24), secrets.token_hex(16)],
    ids=["long", "for addresses", "short"],
)
def test_random_key_is_good(key: str) -> None:
    assert weak_key(with_(secret_key=key)) == ""


def test_passwords_count_for_servers_on_the_network_alone() -> None:
    weak = with_(
        broker_url="redis://redis.example.org:6379/0",
        audio_url="redis://:changeme@10.0.0.5:6379/0",
        database_url="postgres://transcription:postgres@db/transcription",
    )
    found = weak_passwords(weak)
    assert len(found) == 3
    assert not any("changeme" in sentence for sentence in found)
    strong = with_(
        broker_url=f"redis://:{STRONG}@redis.example.org:6379/0",
        audio_url="redis://127.0.0.1:6379/0",
        database_url="",
    )
    assert weak_passwords(strong) == []


def test_web_process_refuses_to_start_with_a_weak_key() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "webapp.serve"],
        cwd=BASE_DIR,
        env={**os.environ, "TRANSCRIBE_SECRET_KEY": "changeme"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert "TRANSCRIBE_SECRET_KEY is no secret" in ended.stderr
    assert "Traceback" not in ended.stderr
