"""Runs the web process: Daphne, with bounds on request bodies that hold before anything is read.

    python -m webapp.serve [--name web-2] [--shared]

Several (`TRANSCRIBE_WEB_PROCESSES`) share one port: each has a listening socket of its own with
SO_REUSEPORT, and the kernel spreads the connections among those that listen.

Twisted would parse a multipart form into memory before Django sees it (a 1 GB form took 11.5 GB),
and spool a body of any size to disk. Here form parsing is off, and a body above its path's limit is
answered with 413 as soon as its length is known. Recordings come in pieces of 8 MB (tus) instead.
What is within the limit is read from disk as the application asks for it (`request_bodies`).

Touches names that Daphne and Twisted do not document: `daphne.server.HTTPFactory`, and the
channel's `_path`. Both packages are pinned, and `tests/webapp/test_serve.py` holds the behaviour.
"""

from __future__ import annotations

import argparse
import gc
import json
import socket
from typing import Any

import daphne.server  # first: it installs Twisted's asyncio reactor
import structlog
from daphne.http_protocol import HTTPFactory

from webapp.config import Settings, site_settings
from webapp.logs import without_keys
from webapp.plain_http import FirstByte, tls_factory
from webapp.request_bodies import FiledRequest, FiledServer
from webapp.weak_secrets import weak_key
from webapp.web_processes import ONLY_NAME, start_beating

log = structlog.get_logger("webapp.serve")

MAX_BODY_BYTES = 16 * 1024**2
MAX_BODY_BYTES_BY_PATH = {b"/v1/audio/transcriptions": 64 * 1024**2}
MAX_SOCKET_MESSAGE_BYTES = 128 * 1024
"""The largest WebSocket message: twice a packet. Refused before it is gathered in memory."""
BACKLOG = 512
"""Connections that wait to be accepted: everybody in a large meeting, at once."""
LINGER_S = 2.0
"""How long a refused body is read and dropped, so that its sender gets to read the answer."""


def body_limit_bytes(path: bytes) -> int:
    """The largest body that `path` (without its query) accepts."""
    return MAX_BODY_BYTES_BY_PATH.get(path, MAX_BODY_BYTES)


def too_large_response(path: bytes) -> bytes:
    """A whole HTTP response: 413 with problem JSON (RFC 9457), after which we close."""
    limit_bytes = body_limit_bytes(path)
    sentence = (
        f"A request to this address may hold {limit_bytes // 1024**2} MB. "
        "Send a recording in pieces instead: the resumable way (tus) is /api/v1/uploads/."
    )
    problem: dict[str, Any] = {
        "type": "about:blank",
        "title": "Payload Too Large",
        "status": 413,
        "code": "too_large",
        "limit_bytes": limit_bytes,
        "detail": sentence,
    }
    if path.startswith(b"/v1/"):  # as clients of OpenAI's API read it
        kind = "invalid_request_error"
        problem["error"] = {"message": sentence, "type": kind, "param": None, "code": "too_large"}
    body = json.dumps(problem).encode()
    return (
        b"HTTP/1.1 413 Payload Too Large\r\n"
        b"Content-Type: application/problem+json\r\n"
        b"Content-Length: " + str(len(body)).encode() + b"\r\n"
        b"Connection: close\r\n\r\n" + body
    )


class BoundedRequest(FiledRequest):
    """A request whose body is never parsed by Twisted and never exceeds its path's limit."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._is_refused = False
        self._received_bytes = 0
        super().__init__(*args, parsePOSTFormSubmission=False, **kwargs)

    def gotLength(self, length: int | None) -> None:  # noqa: N802  # Twisted's name
        """The headers are in; `length` is None for a chunked body."""
        self._asked_path = self.channel._path.partition(b"?")[0]  # noqa: SLF001
        self._limit_bytes = body_limit_bytes(self._asked_path)
        super().gotLength(0 if length is not None and length > self._limit_bytes else length)
        if length is not None and length > self._limit_bytes:
            self._refuse()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802  # Twisted's name
        self._received_bytes += len(data)
        if not self._is_refused and self._received_bytes > self._limit_bytes:
            self._refuse()
        if not self._is_refused:
            super().handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:  # noqa: N802
        if self._is_refused:
            self.channel.loseConnection()
        else:
            super().requestReceived(command, path, version)

    def _refuse(self) -> None:
        self._is_refused = True
        # Else Twisted would ask for the body that was just refused.
        self.requestHeaders.removeHeader(b"Expect")
        self.channel.transport.write(too_large_response(self._asked_path))
        log.info("request_refused", reason="too_large", limit_bytes=self._limit_bytes)
        self.channel.callLater(LINGER_S, self._hang_up)

    def _hang_up(self) -> None:
        channel = getattr(self, "channel", None)
        if channel is not None and channel.transport is not None:
            channel.transport.abortConnection()


class BoundedHTTPFactory(HTTPFactory):
    """Makes BoundedRequests."""

    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802  # Twisted's name
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = BoundedRequest
        return protocol


class TlsHTTPFactory(BoundedHTTPFactory):
    """The same behind TLS, with an explanation for who speaks http. `settings` is set once."""

    settings: Settings

    def __init__(self, server: Any) -> None:
        super().__init__(server)
        self._tls = tls_factory(BoundedHTTPFactory(server), self.settings)

    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802  # Twisted's name
        return FirstByte(self._tls, addr, self.settings)


def endpoint(settings: Settings, *, is_shared: bool = False) -> str:
    """Twisted's description of where to listen."""
    if is_shared:
        return f"fd:fileno={listen_shared(settings.host, settings.port).detach()}"
    host = settings.host.replace("\\", "\\\\").replace(":", "\\:")
    return f"tcp:{settings.port}:interface={host}"


def listen_shared(host: str, port: int) -> socket.socket:
    """A listening socket that others on the same address may join."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind((host, port))
    listener.listen(BACKLOG)
    return listener


def log_request(protocol: Any, action: str, details: dict[str, Any]) -> None:
    """The access log: no query strings, which may hold what people search for, and no keys."""
    if protocol == "http" and action == "complete":
        path = details["path"].partition("?")[0]
        log.info(
            "http_request_answered",
            method=details["method"],
            path=without_keys(path),
            status=details["status"],
            duration_ms=round(details["time_taken"] * 1000),
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m webapp.serve")
    parser.add_argument("--name", default=ONLY_NAME, help="in health and metrics")
    parser.add_argument("--shared", action="store_true", help="others listen on the same port")
    arguments = parser.parse_args()
    settings = site_settings()
    if problem := weak_key(settings):
        raise SystemExit(problem)

    from webapp.asgi import application

    # What was loaded stays: without this, each full collection looks through all of it again, and
    # every caption waits for a fifth of a second.
    gc.collect()
    gc.freeze()
    TlsHTTPFactory.settings = settings
    daphne.server.HTTPFactory = TlsHTTPFactory if settings.tls_certificate else BoundedHTTPFactory
    from transcription.realtime.border import open_sockets  # needs what asgi has set up

    start_beating(arguments.name, settings.broker_url, open_sockets)
    # Https without a certificate of our own means a proxy in front, which tells who is asking.
    has_proxy = settings.is_https and not settings.tls_certificate
    FiledServer(
        application=application,
        endpoints=[endpoint(settings, is_shared=arguments.shared)],
        action_logger=log_request,
        proxy_forwarded_address_header="X-Forwarded-For" if has_proxy else None,
        proxy_forwarded_port_header="X-Forwarded-Port" if has_proxy else None,
        proxy_forwarded_proto_header="X-Forwarded-Proto" if has_proxy else None,
        websocket_max_message_size=MAX_SOCKET_MESSAGE_BYTES,
        websocket_max_frame_size=MAX_SOCKET_MESSAGE_BYTES,
        server_name="",
    ).run()


if __name__ == "__main__":
    main()
