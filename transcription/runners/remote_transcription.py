"""A recording that another server transcribes: uploaded by tus, waited for, fetched.

A client of REST v1 and nothing else: what it does, any program with a token can. Neither the
database nor the services of this machine are used.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import urlsplit
from uuid import UUID

import httpx

PIECE_BYTES: Final = 8 * 1024**2
TUS: Final = {"Tus-Resumable": "1.0.0"}
TIMEOUT_S: Final = 60.0
LOOK_EVERY_S: Final = 1.0
RETRY_EVERY_S: Final = 2.0
GIVE_UP_S: Final = 120.0
"""So long may the server be away, or busy, without an end."""
PASSING: Final = frozenset({423, 429, 502, 503, 504, 507})
"""Answers that another try may mend."""

Progress = Callable[[str, float], None]


class RemoteError(Exception):
    """The server refused, or did not answer for too long; the text is a sentence."""


class RemoteServer:
    """A server and a token for it. `progress` hears what is being done and its share, 0..1."""

    def __init__(self, url: str, token: str, *, progress: Progress) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise RemoteError(
                f"{url} is no address of a server: it must be like https://HOST:PORT."
            )
        self._name = parts.netloc
        self._progress = progress
        self._http = httpx.Client(
            base_url=f"{parts.scheme}://{parts.netloc}",
            headers={"Authorization": f"Bearer {token}"},
            timeout=TIMEOUT_S,
        )

    def __enter__(self) -> RemoteServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def transcribe(
        self, path: Path, *, extension: str, language: str = "", is_draft_only: bool = False
    ) -> str:
        """The transcript in the format `extension`; the recording stays on the server.

        Raises RemoteError, OSError where the file cannot be read.
        """
        with path.open("rb") as file:
            upload = self._begin(path, file, language=language, is_draft_only=is_draft_only)
            self._send(upload, file)
        self._wait_for_check(upload)
        self._wait_for_text(upload)
        return self._ask("GET", f"/api/v1/recordings/{upload}/transcript.{extension}").text

    def _begin(self, path: Path, file: IO[bytes], *, language: str, is_draft_only: bool) -> UUID:
        metadata = {
            "filename": path.name,
            "language": language,
            "draft_only": "true" if is_draft_only else "",
        }
        answer = self._ask(
            "POST",
            "/api/v1/uploads/",
            headers={
                "Upload-Length": str(file.seek(0, 2)),
                "Upload-Metadata": ",".join(
                    f"{key} {base64.b64encode(value.encode('utf-8', 'replace')).decode()}"
                    for key, value in metadata.items()
                    if value
                ),
            },
        )
        # Its last part alone: behind a proxy the server may take its own name for another.
        return UUID(answer.headers["Location"].rpartition("/")[2])

    def _send(self, upload: UUID, file: IO[bytes]) -> None:
        """From where the server stands, again after each lost connection."""
        length_bytes, offset_bytes = file.seek(0, 2), 0
        give_up_at_s = time.monotonic() + GIVE_UP_S
        while offset_bytes < length_bytes:
            self._progress("uploading", offset_bytes / length_bytes)
            file.seek(offset_bytes)
            try:
                answer = self._ask(
                    "PATCH",
                    f"/api/v1/uploads/{upload}",
                    headers={
                        "Upload-Offset": str(offset_bytes),
                        "Content-Type": "application/offset+octet-stream",
                    },
                    content=file.read(PIECE_BYTES),
                    may_repeat=False,
                )
            except httpx.TransportError as error:
                if time.monotonic() > give_up_at_s:
                    raise self._unreachable(error) from error
                # How much of the piece arrived is the server's to say.
                answer = self._ask("HEAD", f"/api/v1/uploads/{upload}")
            reached_bytes = int(answer.headers["Upload-Offset"])
            if reached_bytes > offset_bytes:
                give_up_at_s = time.monotonic() + GIVE_UP_S
            offset_bytes = reached_bytes

    def _wait_for_check(self, upload: UUID) -> None:
        while True:
            self._progress("checking", 0.0)
            found = self._ask("GET", f"/api/v1/uploads/{upload}").json()
            if found["state"] == "accepted":
                return
            if found["state"] == "refused":
                raise RemoteError(found["problem"]["sentence"])
            time.sleep(LOOK_EVERY_S)

    def _wait_for_text(self, recording: UUID) -> None:
        while True:
            found = self._ask("GET", f"/api/v1/recordings/{recording}").json()
            if found["state"] == "ready":
                return
            if found["state"] == "attention":
                raise RemoteError(found["problem"]["sentence"])
            parameters = {"recording": str(recording), "limit": "1"}
            for job in self._ask("GET", "/api/v1/jobs", params=parameters).json()["items"]:
                total_ms = max(1, job["audio_total_ms"])
                self._progress("transcribing", job["audio_done_ms"] / total_ms)
            time.sleep(LOOK_EVERY_S)

    def _ask(
        self,
        method: str,
        path: str,
        *,
        headers: dict[str, str] | None = None,
        may_repeat: bool = True,
        **request: Any,
    ) -> httpx.Response:
        """The answer to a request, asked again while the server is away or busy.

        Raises RemoteError; httpx.TransportError where it must not be repeated blindly.
        """
        give_up_at_s = time.monotonic() + GIVE_UP_S
        while True:
            try:
                answer = self._http.request(
                    method, path, headers={**TUS, **(headers or {})}, **request
                )
            except httpx.TransportError as error:
                if not may_repeat:
                    raise
                if time.monotonic() > give_up_at_s:
                    raise self._unreachable(error) from error
                pause_s = RETRY_EVERY_S
            else:
                if answer.is_success:
                    return answer
                if answer.status_code not in PASSING or time.monotonic() > give_up_at_s:
                    raise RemoteError(self._sentence_of(answer))
                pause_s = _asked_pause_s(answer)
            time.sleep(pause_s)

    def _unreachable(self, error: httpx.TransportError) -> RemoteError:
        return RemoteError(f"{self._name} cannot be reached ({type(error).__name__}).")

    def _sentence_of(self, answer: httpx.Response) -> str:
        try:
            return str(answer.json()["detail"])
        except (ValueError, KeyError, TypeError):
            return f"{self._name} answered with HTTP status {answer.status_code}."


def _asked_pause_s(answer: httpx.Response) -> float:
    value = answer.headers.get("Retry-After", "")
    return float(min(int(value), 60)) if value.isascii() and value.isdigit() else RETRY_EVERY_S
