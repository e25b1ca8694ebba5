"""People who come to the real application: they log in as a browser does, or have a token."""

from __future__ import annotations

from typing import Any

import httpx
from django.test import Client

from tests.fakes.people import PASSWORD
from webapp.accounts.models import User
from webapp.asgi import application

HERE = "http://localhost"


class Visitor:
    """One browser, or one tool with `token`. Close it by `async with`."""

    def __init__(self, token: str = "") -> None:
        self._http = httpx.AsyncClient(
            transport=httpx.ASGITransport(application),
            base_url=HERE,
            headers={"Authorization": f"Bearer {token}"} if token else {"Accept": "text/html"},
        )

    async def __aenter__(self) -> Visitor:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def log_in(self, person: User) -> None:
        await self.ask("GET", "/accounts/login/")
        form = {"login": person.email, "password": PASSWORD}
        answer = await self.ask("POST", "/accounts/login/", form)
        assert answer.status_code == 302, answer.text
        assert "sessionid" in self._http.cookies

    async def ask(
        self,
        method: str,
        path: str,
        form: dict[str, str] | None = None,
        *,
        said: object = None,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        """A `form` goes with the CSRF token of the last page, as from a page of ours; what is
        `said` goes as JSON."""
        own = {"X-CSRFToken": self._http.cookies.get("csrftoken", ""), **(headers or {})}
        body: dict[str, Any] = {"data": form} if said is None else {"json": said}
        return await self._http.request(method, path, headers=own, **body)

    def as_client(self) -> Client:
        """With the same cookies, for `tests.fakes.live.Page`."""
        client = Client()
        client.cookies["sessionid"] = self._http.cookies.get("sessionid", "")
        return client
