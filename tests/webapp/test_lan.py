"""Https for the local network: names, a local authority, and certificates that browsers take."""

from __future__ import annotations

import ssl
import stat
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from webapp import lan


def load(path: str | Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(Path(path).read_bytes())


@pytest.fixture
def variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr(lan, "machine_names", lambda: ["192.0.2.7", "meeting.example", "localhost"])
    return lan.prepare(tmp_path)


def test_certificate_is_for_the_machines_names_and_made_by_the_authority(
    variables: dict[str, str],
) -> None:
    certificate = load(variables["TRANSCRIBE_TLS_CERTIFICATE"])
    authority = load(variables["TRANSCRIBE_TLS_AUTHORITY"])
    certificate.verify_directly_issued_by(authority)
    assert lan.certificate_names(certificate) == ["meeting.example", "localhost", "192.0.2.7"]
    lifetime = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    assert lifetime <= timedelta(days=398)
    assert variables["TRANSCRIBE_ALLOWED_HOSTS"] == "192.0.2.7,meeting.example,localhost"


def test_tls_client_that_trusts_the_authority_accepts_the_certificate(
    variables: dict[str, str],
) -> None:
    """A handshake in memory, checked as strictly as a browser's."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(variables["TRANSCRIBE_TLS_CERTIFICATE"], variables["TRANSCRIBE_TLS_KEY"])
    client = ssl.create_default_context(cafile=variables["TRANSCRIBE_TLS_AUTHORITY"])
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname="192.0.2.7")
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    done: set[ssl.SSLObject] = set()
    for _ in range(6):
        for side in (ours, theirs):
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                pass
    assert done == {ours, theirs}


def test_keys_are_readable_by_their_owner_only(variables: dict[str, str], tmp_path: Path) -> None:
    for name in ("authority.key", "server.key"):
        assert stat.S_IMODE((tmp_path / "tls" / name).stat().st_mode) == 0o600


def test_certificate_is_kept_until_the_names_change(
    variables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(variables["TRANSCRIBE_TLS_CERTIFICATE"])
    authority = Path(variables["TRANSCRIBE_TLS_AUTHORITY"]).read_bytes()
    first = path.read_bytes()
    lan.prepare(tmp_path)
    assert path.read_bytes() == first
    monkeypatch.setattr(lan, "machine_names", lambda: ["192.0.2.8"])
    lan.prepare(tmp_path)
    assert lan.certificate_names(load(path)) == ["192.0.2.8"]
    assert Path(variables["TRANSCRIBE_TLS_AUTHORITY"]).read_bytes() == authority


def test_own_certificate_is_served_under_its_names_without_an_authority(
    variables: dict[str, str], tmp_path: Path
) -> None:
    certificate, key = (
        variables["TRANSCRIBE_TLS_CERTIFICATE"],
        variables["TRANSCRIBE_TLS_KEY"],
    )
    own = lan.prepare(tmp_path / "other", certificate, key)
    assert own["TRANSCRIBE_TLS_CERTIFICATE"] == certificate
    assert "TRANSCRIBE_TLS_AUTHORITY" not in own
    assert own["TRANSCRIBE_ALLOWED_HOSTS"].startswith("meeting.example,")


def test_certificate_without_its_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="belong together"):
        lan.prepare(tmp_path, certificate="some.pem")


def test_this_machine_has_names_that_a_browser_can_open() -> None:
    names = lan.machine_names()
    assert {"localhost", "127.0.0.1"} <= set(names)
    assert len(names) == len(set(names))
