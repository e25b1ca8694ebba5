"""`manage.py check --deploy`: clean where all is well, and a sentence for each fault."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from transcription import checks, deploy_checks
from webapp.config import BASE_DIR, site_settings

Change = Callable[..., None]
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def change(monkeypatch: pytest.MonkeyPatch) -> Change:
    """Change the site's settings for the checks."""

    def apply(**values: Any) -> None:
        changed = site_settings().model_copy(update=values)
        monkeypatch.setattr(deploy_checks, "site_settings", lambda: changed)
        monkeypatch.setattr(checks, "site_settings", lambda: changed)

    return apply


def ids(check: Callable[..., Any]) -> list[str]:
    messages = list(check(app_configs=None))
    assert all(str(message.hint) for message in messages)
    return [message.id for message in messages]


@pytest.mark.parametrize("https", ["proxy", "own authority"])
def test_check_is_clean_under_https(https: str, tmp_path: Path) -> None:
    """As an administrator runs it, with the servers that the suite runs: not one warning."""
    tmp_path.chmod(0o700)
    ended = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=BASE_DIR,
        env={
            **os.environ,
            "TRANSCRIBE_DATA_DIR": str(tmp_path),
            "TRANSCRIBE_SECRET_KEY": secrets.token_urlsafe(50),
            "TRANSCRIBE_IS_HTTPS": "true",
            "TRANSCRIBE_MAX_UPLOAD_BYTES": str(1024**3),
            "ASR_LIVE_BACKEND": "scripted",
            "ASR_BATCH_BACKEND": "scripted",
            "TRANSCRIBE_TLS_AUTHORITY": "" if https == "proxy" else "authority.pem",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    found = [line for line in ended.stderr.splitlines() if line.startswith("?:")]
    # The disk of who runs the tests is not the subject.
    assert [line for line in found if "W015" not in line] == []
    assert ended.returncode == (1 if found else 0)


def test_media_among_static_files_is_an_error(settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"
    assert ids(deploy_checks.check_media) == []
    settings.STATIC_ROOT = tmp_path
    assert ids(deploy_checks.check_media) == ["transcription.E010"]
    settings.STATIC_ROOT, settings.STATICFILES_DIRS = "/nowhere", [tmp_path / "media" / "x"]
    assert ids(deploy_checks.check_media) == ["transcription.E010"]


def test_media_that_cannot_be_written_is_an_error(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MEDIA_ROOT = tmp_path / "new" / "media"
    monkeypatch.setattr(deploy_checks.os, "access", lambda path, mode: path != tmp_path)
    assert ids(deploy_checks.check_media) == ["transcription.E011"]


def test_open_servers_are_found_where_the_network_reaches_them(
    change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loopback is taken for this machine's address on the network."""
    monkeypatch.setattr(deploy_checks, "machine_names", lambda: ["192.0.2.1", "name", "127.0.0.1"])
    asked = []

    def lets_in(place: tuple[str, int]) -> bool:
        asked.append(place)
        return place == ("192.0.2.1", 7001)

    monkeypatch.setattr(deploy_checks, "_lets_anybody_in", lets_in)
    change(
        broker_url="redis://:password@127.0.0.1:7001/0",
        audio_url="redis://:password@audio.example.org/0",
    )
    assert ids(deploy_checks.check_servers_are_closed) == ["transcription.E013"]
    assert asked == [("192.0.2.1", 7001), ("audio.example.org", 6379)]


def test_a_server_is_asked_without_its_password() -> None:
    port = int(site_settings().broker_url.rpartition(":")[2].split("/")[0])
    assert deploy_checks._lets_anybody_in(("127.0.0.1", port))  # that of the tests has none
    assert not deploy_checks._lets_anybody_in(("127.0.0.1", 1))


@pytest.mark.parametrize(
    ("apart_s", "found"),
    [(0.0, []), (-5.0, ["transcription.W014"]), (45.0, ["transcription.E014"])],
)
def test_clocks_that_differ_are_told(
    apart_s: float, found: list[str], db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = deploy_checks._broker_time()
    monkeypatch.setitem(deploy_checks.CLOCKS, "broker", lambda: theirs + apart_s)
    assert ids(deploy_checks.check_clocks) == found


def test_silent_broker_is_not_their_subject(change: Change, db: None) -> None:
    change(broker_url="redis://127.0.0.1:1/0", audio_url="redis://127.0.0.1:1/0")
    assert ids(deploy_checks.check_clocks) == []
    assert ids(deploy_checks.check_servers_are_closed) == []


def test_full_disk_is_told(change: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    change(max_upload_bytes=10 * 1024**3)
    for free, found in ((9, ["transcription.W015"]), (11, [])):
        usage = Usage(0, 0, free * 1024**3)
        monkeypatch.setattr(deploy_checks.shutil, "disk_usage", lambda _, usage=usage: usage)
        assert ids(deploy_checks.check_disk) == found


def test_files_that_others_may_read_are_told(change: Change, tmp_path: Path) -> None:
    change(data_dir=tmp_path)
    secret = tmp_path / "settings.env"
    secret.touch(mode=0o600)
    tmp_path.chmod(0o700)
    assert ids(deploy_checks.check_files_are_private) == []
    secret.chmod(0o644)
    tmp_path.chmod(0o750)
    assert ids(deploy_checks.check_files_are_private) == ["transcription.W016"] * 2


def test_plain_http_on_the_network_is_told(change: Change) -> None:
    for host, is_https, found in (
        ("192.0.2.1", False, ["transcription.W017"]),
        ("127.0.0.1", False, []),
        ("192.0.2.1", True, []),
    ):
        change(host=host, is_https=is_https)
        assert ids(deploy_checks.check_https) == found


def test_weak_secrets_are_errors(change: Change) -> None:
    change(broker_url="redis://broker.example.org/0")
    assert ids(deploy_checks.check_passwords) == ["transcription.E012"]
    change(secret_key=type(site_settings().secret_key)("changeme"))
    assert ids(checks.check_signing_key) == ["transcription.E002"]
