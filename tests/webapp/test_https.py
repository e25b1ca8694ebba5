"""What changes under https: who comes by http is sent on, and cookies travel no other way."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from django.test import Client
from pytest_django.fixtures import Settings

from webapp.config import BASE_DIR

NAMES = (
    "SECURE_SSL_REDIRECT",
    "SECURE_HSTS_SECONDS",
    "SESSION_COOKIE_SECURE",
    "SESSION_COOKIE_HTTPONLY",
    "SESSION_COOKIE_SAMESITE",
    "CSRF_COOKIE_SECURE",
)


def settings_with(**environment: str) -> dict[str, object]:
    code = (
        "import json; from django.conf import settings; "
        f"print(json.dumps([getattr(settings, name) for name in {NAMES!r}]))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=BASE_DIR,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return dict(zip(NAMES, json.loads(ended.stdout), strict=True))


def test_https_makes_cookies_secure_and_is_remembered() -> None:
    secure = settings_with(TRANSCRIBE_IS_HTTPS="true")
    assert secure == {
        "SECURE_SSL_REDIRECT": True,
        "SECURE_HSTS_SECONDS": 30 * 24 * 3600,
        "SESSION_COOKIE_SECURE": True,
        "SESSION_COOKIE_HTTPONLY": True,
        "SESSION_COOKIE_SAMESITE": "Lax",
        "CSRF_COOKIE_SECURE": True,
    }


def test_own_authority_is_not_remembered_since_its_page_would_be_out_of_reach() -> None:
    own = settings_with(TRANSCRIBE_IS_HTTPS="true", TRANSCRIBE_TLS_AUTHORITY="authority.pem")
    assert own["SECURE_HSTS_SECONDS"] == 0
    assert own["SESSION_COOKIE_SECURE"] is True


def test_who_comes_by_http_is_sent_on_but_what_watches_from_inside_is_not(
    client: Client, settings: Settings, db: None
) -> None:
    settings.SECURE_SSL_REDIRECT = True
    answer = client.get("/accounts/login/?next=/")
    assert (answer.status_code, answer["Location"]) == (
        301,
        "https://testserver/accounts/login/?next=/",
    )
    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").status_code in {200, 503}
    assert client.get("/metrics").status_code == 404
    assert client.get("/healthz/../accounts/login/").status_code == 301
