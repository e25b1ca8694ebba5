"""What who speaks http is told at an address that speaks https."""

from __future__ import annotations

import pytest

from webapp.config import Settings
from webapp.plain_http import explanation

SETTINGS = Settings(
    secret_key="x",
    port=8443,
    allowed_hosts="192.0.2.7,meeting.example,localhost",
    tls_authority="/somewhere/authority.pem",
)


def answer(request: str, settings: Settings = SETTINGS) -> tuple[str, str]:
    """(head, page)."""
    head, _, body = explanation(request.encode("latin1"), settings).decode().partition("\r\n\r\n")
    assert f"Content-Length: {len(body.encode())}" in head
    return head, body


def test_page_names_the_same_address_by_https_and_the_certificate() -> None:
    head, page = answer("GET /live/new/?q=secret HTTP/1.1\r\nHost: meeting.example:8443\r\n\r\n")
    assert head.startswith("HTTP/1.1 426 ")
    assert 'href="https://meeting.example:8443/live/new/"' in page
    assert 'href="https://meeting.example:8443/certificate/"' in page
    assert "secret" not in page


def test_certificate_of_ones_own_needs_no_help_page() -> None:
    settings = SETTINGS.model_copy(update={"tls_authority": ""})
    assert "certificate" not in answer("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", settings)[1]


@pytest.mark.parametrize(
    "request_head",
    [
        "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        'GET /"><script> HTTP/1.1\r\n\r\n',
        "GET //evil.example/ HTTP/1.1\r\n\r\n",
        "nonsense",
        "",
    ],
)
def test_nothing_that_the_request_says_leads_elsewhere(request_head: str) -> None:
    page = answer(request_head)[1]
    assert 'href="https://192.0.2.7:8443/' in page
    assert "<script" not in page
    assert 'href="https://evil' not in page
