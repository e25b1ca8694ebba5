"""A real OpenID provider of a test's own: discovery, authorisation code with PKCE, user info."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.fakes.waiting import wait_until
from webapp.setup import free_port

TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class OpenIdProvider:
    """`python -m oidc_provider_mock` on this machine, in a process of its own."""

    url: str

    def knows(self, subject: str, **claims: object) -> None:
        """Somebody has an account there, with these claims."""
        self._ask("PUT", f"/users/{subject}", json.dumps(claims).encode(), "application/json")

    def agrees(self, authorize_url: str, subject: str) -> str:
        """The person logs in there; the address to which the provider sends their browser."""
        return self._decide(authorize_url, {"sub": subject})

    def is_denied(self, authorize_url: str) -> str:
        """This provider forgets to send the `state` back, as the standard wants it."""
        state = parse_qs(urlsplit(authorize_url).query)["state"][0]
        return f"{self._decide(authorize_url, {'action': 'deny'})}&state={state}"

    def is_up(self) -> bool:
        try:
            self._ask("GET", "/.well-known/openid-configuration")
        except OSError:
            return False
        return True

    def _decide(self, address: str, form: dict[str, str]) -> str:
        assert address.startswith(self.url), address
        return self._ask(
            "POST",
            address.removeprefix(self.url),
            urlencode(form).encode(),
            "application/x-www-form-urlencoded",
        )

    def _ask(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> str:
        """The address that it redirects to, if it does."""
        request = urllib.request.Request(  # noqa: S310 - ours, on this machine
            self.url + path, body, {"Content-Type": kind} if kind else {}, method=method
        )
        opener = urllib.request.build_opener(_StayHere)
        try:
            with opener.open(request, timeout=TIMEOUT_S):
                return ""
        except urllib.error.HTTPError as answer:
            with answer:
                if answer.code not in {302, 303}:
                    raise
                return answer.headers["Location"]


class _StayHere(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        return None


@contextmanager
def running_openid_provider() -> Iterator[OpenIdProvider]:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "oidc_provider_mock", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    provider = OpenIdProvider(f"http://127.0.0.1:{port}")
    try:
        wait_until(provider.is_up, timeout_s=TIMEOUT_S, what="the OpenID provider answers")
        yield provider
    finally:
        process.terminate()
        process.wait(timeout=20)
