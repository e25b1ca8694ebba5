"""Https on the local network: what `make run LAN=1` adds to the settings of one start.

A browser gives a microphone only to https pages, so the server needs a certificate for the names
and addresses under which colleagues reach this machine. Without one of your own, a local authority
is made once (`tls/authority.pem`; its key never leaves the data directory), and a certificate from
it at each start where the names have changed or the old one is about to end. Colleagues' browsers
trust it once they have the authority's certificate, which `/certificate/` hands out.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFETIME: Final = timedelta(days=3650)
CERTIFICATE_LIFETIME: Final = timedelta(days=397)
"""Browsers refuse certificates that live longer than 398 days."""
RENEW_BEFORE_END: Final = timedelta(days=60)


def prepare(directory: Path, certificate: str = "", key: str = "") -> dict[str, str]:
    """Environment variables that make the server serve https to the local network.

    With `certificate` and `key` (PEM files of your own) no authority is involved. Raises SystemExit
    with a sentence when only one of them is given or a file is missing.
    """
    if bool(certificate) != bool(key):
        raise SystemExit("CERT= and KEY= belong together: give both or neither.")
    for path in filter(None, (certificate, key)):
        if not Path(path).is_file():
            raise SystemExit(f"There is no file {path}.")
    names = machine_names()
    variables = {
        "TRANSCRIBE_HOST": "0.0.0.0",  # noqa: S104  # to serve the network is what was asked for
        "TRANSCRIBE_IS_HTTPS": "true",
    }
    if certificate:
        own = certificate_names(x509.load_pem_x509_certificate(Path(certificate).read_bytes()))
        return variables | {
            "TRANSCRIBE_ALLOWED_HOSTS": ",".join(dict.fromkeys([*own, *names])),
            "TRANSCRIBE_TLS_CERTIFICATE": str(Path(certificate).resolve()),
            "TRANSCRIBE_TLS_KEY": str(Path(key).resolve()),
        }
    folder = directory / "tls"
    folder.mkdir(mode=0o700, exist_ok=True)
    authority = _Authority(folder)
    certificate_path = authority.certificate_for(names)
    return variables | {
        "TRANSCRIBE_ALLOWED_HOSTS": ",".join(names),
        "TRANSCRIBE_TLS_CERTIFICATE": str(certificate_path),
        "TRANSCRIBE_TLS_KEY": str(folder / "server.key"),
        "TRANSCRIBE_TLS_AUTHORITY": str(authority.path),
    }


def machine_names() -> list[str]:
    """Names and addresses of this machine, the one to tell colleagues first."""
    host = socket.gethostname().lower()
    addresses = _addresses()
    names = [name for name in (socket.getfqdn().lower(), host) if _is_host_name(name)]
    if _is_host_name(host) and "." not in host:
        names.append(f"{host}.local")
    return list(dict.fromkeys([*addresses, *names, "localhost", "127.0.0.1"]))


def _is_host_name(name: str) -> bool:
    return bool(re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", name)) and name != "localhost"


def _addresses() -> list[str]:
    """IPv4 addresses of this machine beside loopback, that of the default route first."""
    found: list[str] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: it only picks the route
            found.append(probe.getsockname()[0])
        except OSError:
            pass  # no route: a machine without a network
    try:
        listed = subprocess.run(
            ["hostname", "-I"],  # noqa: S607  # Debian's and Ubuntu's own
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        ).stdout.split()
    except (OSError, subprocess.SubprocessError):
        listed = []
    for item in [*found, *listed]:
        address = ipaddress.ip_address(item)
        if address.version == 4 and not address.is_loopback and item not in found:
            found.append(item)
    return found


def certificate_names(certificate: x509.Certificate) -> list[str]:
    """Names and addresses that a certificate is for."""
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    value = extension.value
    return [
        *value.get_values_for_type(x509.DNSName),
        *(str(address) for address in value.get_values_for_type(x509.IPAddress)),
    ]


class _Authority:
    """The local authority in `folder`: `authority.{pem,key}` and `server.{pem,key}`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "authority.pem"
        self._folder = folder
        key_path = folder / "authority.key"
        if self.path.exists() and key_path.exists():
            self._certificate = x509.load_pem_x509_certificate(self.path.read_bytes())
            key = serialization.load_pem_private_key(key_path.read_bytes(), password=None)
            if not isinstance(key, ec.EllipticCurvePrivateKey):
                raise SystemExit(f"{key_path} is not a key that this server made.")
            self._key = key
            return
        self._key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Transcription server"),
                x509.NameAttribute(
                    NameOID.COMMON_NAME, f"Local authority of {socket.gethostname()}"[:64]
                ),
            ]
        )
        now = datetime.now(UTC)
        self._certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + AUTHORITY_LIFETIME)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(is_authority=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        _write_key(key_path, self._key)
        self.path.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def certificate_for(self, names: list[str]) -> Path:
        """`server.pem` for exactly `names`: the one at hand, or a new one with a new key."""
        path = self._folder / "server.pem"
        if path.exists():
            old = x509.load_pem_x509_certificate(path.read_bytes())
            is_fresh = old.not_valid_after_utc - datetime.now(UTC) > RENEW_BEFORE_END
            if (
                is_fresh
                and set(certificate_names(old)) == set(names)
                and old.issuer == self._certificate.subject
            ):
                return path
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        authority_identifier = self._certificate.extensions.get_extension_for_class(
            x509.SubjectKeyIdentifier
        )
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])]))
            .issuer_name(self._certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + CERTIFICATE_LIFETIME)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(is_authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.SubjectAlternativeName([_general_name(name) for name in names]),
                critical=False,
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(
                    authority_identifier.value
                ),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )
        _write_key(self._folder / "server.key", key)
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return path


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
