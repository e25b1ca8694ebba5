"""A program with a token that talks to a running server, as `curl` would."""

from __future__ import annotations

import base64
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PIECE_BYTES = 4 * 1024**2


@dataclass
class Answer:
    status: int
    headers: Any
    body: bytes


@dataclass
class Tool:
    base_url: str
    token: str

    def ask(self, method: str, address: str, body: bytes | None = None, **headers: str) -> Answer:
        if not address.startswith("http"):
            address = self.base_url + address
        request = urllib.request.Request(  # noqa: S310  # http, ours
            address,
            data=body,
            method=method,
            headers={
                "Authorization": f"Bearer {self.token}",
                **{name.replace("_", "-"): value for name, value in headers.items()},
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
                return Answer(response.status, response.headers, response.read())
        except urllib.error.HTTPError as refusal:
            with refusal:
                return Answer(refusal.code, refusal.headers, refusal.read())

    def upload(
        self, data: bytes, name: str, *, after_piece: Callable[[int], None] = lambda offset: None
    ) -> str:
        """Send a recording in pieces; `after_piece` hears the offset. Returns its page's path."""
        made = self.ask(
            "POST",
            "/api/v1/uploads/",
            b"",
            Tus_Resumable="1.0.0",
            Upload_Length=str(len(data)),
            Upload_Metadata=f"filename {base64.b64encode(name.encode()).decode()}",
        )
        assert made.status == 201
        address = made.headers["Location"]
        offset = 0
        while offset < len(data):
            sent = self.ask(
                "PATCH",
                address,
                data[offset : offset + PIECE_BYTES],
                Tus_Resumable="1.0.0",
                Upload_Offset=str(offset),
                Content_Type="application/offset+octet-stream",
            )
            assert sent.status == 204
            offset = int(sent.headers["Upload-Offset"])
            after_piece(offset)
            asked = self.ask("HEAD", address, Tus_Resumable="1.0.0")
            assert asked.headers["Upload-Offset"] == str(offset)
        return f"/recordings/{address.rsplit('/', 1)[1]}"
