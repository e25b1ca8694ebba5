"""Tells who comes by http to an address that speaks https, instead of failing at them.

People type an address without `https://`, and a browser on the local network then gets nothing but
a lost connection. The first byte tells the two apart: TLS begins with 0x16, a request with a
letter. Whoever speaks http gets a page that says so, with the right address and, where the
certificate is of our own making, the way to its help page. Nothing else is served in plain.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any, Final

from OpenSSL import crypto
from twisted.internet import interfaces, ssl
from twisted.internet.protocol import Protocol
from twisted.protocols.tls import TLSMemoryBIOFactory

from webapp.config import Settings

TLS_HANDSHAKE: Final = b"\x16"
MAX_HEAD_BYTES: Final = 8192
SILENT_S: Final = 20.0
"""A connection that has not said by then what it speaks is closed."""
_CERTIFICATE: Final = re.compile(
    rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL
)
_PATH: Final = re.compile(r"/[!-~]*")

_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>This server speaks https</title></head>
<body><h1>This server speaks https</h1>
<p>You came by http, which would give the browser no microphone and anybody on the network your
captions. The same page by https:</p>
<p><a href="{address}">{address}</a></p>
{certificate}</body></html>
"""
_CERTIFICATE_LINES: Final = """<p>The browser may warn first, because this server made its own
certificate. These are the steps to trust it, once for each device:</p>
<p><a href="{address}">{address}</a></p>
"""


def tls_context(settings: Settings) -> Any:
    """What the configured certificate and key make; the chain's further certificates go along."""
    found = _CERTIFICATE.findall(Path(settings.tls_certificate).read_bytes())
    own, *chain = (crypto.load_certificate(crypto.FILETYPE_PEM, pem) for pem in found)
    key = crypto.load_privatekey(crypto.FILETYPE_PEM, Path(settings.tls_key).read_bytes())
    return ssl.CertificateOptions(privateKey=key, certificate=own, extraCertChain=chain or None)


def explanation(head: bytes, settings: Settings) -> bytes:
    """The whole response to a plain request whose first lines are `head`.

    The address in it is one of our own names, whatever the request says of itself.
    """
    first_line, _, rest = head.decode("latin1").partition("\r\n")
    asked = re.search(r"^host:\s*([^\s:]+)", rest, re.IGNORECASE | re.MULTILINE)
    hosts = settings.hosts
    host = asked[1].lower() if asked and asked[1].lower() in hosts else next(iter(hosts), "")
    path = first_line.partition(" ")[2].partition(" ")[0].partition("?")[0]
    site = f"https://{host}:{settings.port}"
    certificate = ""
    if settings.tls_authority:
        certificate = _CERTIFICATE_LINES.format(address=html.escape(f"{site}/certificate/"))
    address = html.escape(site + (path if _PATH.fullmatch(path) else "/"))
    body = _PAGE.format(address=address, certificate=certificate).encode()
    return (
        b"HTTP/1.1 426 Upgrade Required\r\n"
        b"Upgrade: TLS/1.2, HTTP/1.1\r\n"
        b"Connection: Upgrade, close\r\n"
        b"Content-Type: text/html; charset=utf-8\r\n"
        b"Content-Security-Policy: default-src 'none'\r\n"
        b"Cache-Control: no-store\r\n"
        b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
    )


class FirstByte(Protocol):
    """A new connection, until it has said what it speaks."""

    transport: Any

    def __init__(self, tls: TLSMemoryBIOFactory, address: Any, settings: Settings) -> None:
        self._tls = tls
        self._address = address
        self._settings = settings
        self._head = b""
        self._giving_up: Any = None

    def connectionMade(self) -> None:  # noqa: N802  # Twisted's name
        self._giving_up = self.transport.reactor.callLater(SILENT_S, self.transport.loseConnection)

    def connectionLost(self, reason: Any = None) -> None:  # noqa: N802  # Twisted's name
        self._stop_waiting()

    def dataReceived(self, data: bytes) -> None:  # noqa: N802  # Twisted's name
        self._head += data
        if self._head.startswith(TLS_HANDSHAKE):
            self._hand_over()
        elif b"\r\n\r\n" in self._head or len(self._head) > MAX_HEAD_BYTES:
            self.transport.write(explanation(self._head, self._settings))
            self.transport.loseConnection()

    def _stop_waiting(self) -> None:
        if self._giving_up.active():
            self._giving_up.cancel()

    def _hand_over(self) -> None:
        self._stop_waiting()
        protocol: Any = self._tls.buildProtocol(self._address)
        self.transport.protocol = protocol
        protocol.makeConnection(self.transport)
        protocol.dataReceived(self._head)


def tls_factory(http_factory: interfaces.IProtocolFactory, settings: Settings) -> Any:
    """`http_factory` behind TLS."""
    return TLSMemoryBIOFactory(tls_context(settings), False, http_factory)
