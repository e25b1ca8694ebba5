"""A tool that receives webhooks: it answers as it is told, late, elsewhere, or not at all."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """`status` is its answer, `location` goes with it. It `hangs` after the request, or `drips` its
    answer, until it is let go."""

    port: int = 0
    status: int = 204
    location: str = ""
    hangs: bool = False
    drips: bool = False
    received: list[Received] = field(default_factory=list)
    was_asked: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"


@contextmanager
def receiver() -> Iterator[Receiver]:
    """Serves on loopback while the context lasts."""
    state = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            state.received.append(Received(self.path, headers, body))
            state.was_asked.set()
            if state.hangs:
                state.let_go.wait(20)
            if state.drips:
                self._drip()
                return
            self.send_response(state.status)
            if state.location:
                self.send_header("Location", state.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST  # noqa: N815  # what a followed redirection would ask

        def _drip(self) -> None:
            """A header without an end: every read of the other side succeeds."""
            try:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                while not state.let_go.wait(0.02):
                    self.wfile.write(b"a")
                    self.wfile.flush()
            except OSError:
                self.close_connection = True

        def log_message(self, *args: object) -> None:
            """Not on the tests' output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield state
    finally:
        state.let_go.set()
        server.shutdown()
        server.server_close()
        thread.join()
