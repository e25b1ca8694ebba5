"""The page that hands out the local authority's certificate."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from django.test import Client

from webapp import certificate, lan
from webapp.config import site_settings


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> x509.Certificate:
    path = lan.prepare(tmp_path)["TRANSCRIBE_TLS_AUTHORITY"]
    changed = site_settings().model_copy(update={"tls_authority": path})
    monkeypatch.setattr(certificate, "site_settings", lambda: changed)
    return x509.load_pem_x509_certificate(Path(path).read_bytes())


def test_anonymous_visitor_gets_the_certificate_and_its_fingerprint(
    client: Client, authority: x509.Certificate
) -> None:
    page = client.get("/certificate/")
    assert page.status_code == 200
    assert authority.fingerprint(hashes.SHA256()).hex(":").upper() in page.content.decode()
    answer = client.get("/certificate/authority.crt")
    assert answer["Content-Type"] == "application/x-x509-ca-cert"
    assert x509.load_pem_x509_certificate(answer.content) == authority


def test_there_is_no_such_page_without_an_authority_of_our_own(client: Client) -> None:
    assert client.get("/certificate/").status_code == 404
    assert client.get("/certificate/authority.crt").status_code == 404
