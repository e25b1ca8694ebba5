"""The audio of a recording for its player: byte ranges, sent in small pieces off the event loop.

Django's FileResponse ignores Range, and under ASGI a synchronous iterator is read whole into
memory; so the body here is an asynchronous one.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.http.response import HttpResponseNotModified

from transcription import selectors
from transcription.api.problems import endpoint, problem_response
from transcription.errors import NotFoundError
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act, Scope, User

PIECE_BYTES: Final = 256 * 1024
PEAKS_NAME: Final = "peaks.json"
_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@endpoint("GET", "HEAD", scope=Scope.RECORDINGS_READ)
def recording_media(request: HttpRequest, user: User, recording_id: UUID) -> HttpResponseBase:
    """What the player plays: 200, or 206 and 416 for a range."""
    recording = selectors.access_recording_by_id(user, recording_id)
    if request.method == "GET":
        record_act(act=Act.PLAYED, actor=user, on=recording)
    return send_file(request, recording.player_path, recording.media_type)


@endpoint("GET", "HEAD", scope=Scope.RECORDINGS_READ)
def recording_peaks(request: HttpRequest, user: User, recording_id: UUID) -> HttpResponseBase:
    """The waveform: a JSON list of at most 2000 levels, 0..100."""
    recording = selectors.access_recording_by_id(user, recording_id)
    return send_file(request, recording.folder / PEAKS_NAME, "application/json")


def send_file(request: HttpRequest, path: Path, media_type: str) -> HttpResponseBase:
    """200, or 206 and 416 for a range, or 304. Raises NotFoundError where it is not there."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        raise NotFoundError from None
    etag = f'"{stat.st_ino:x}-{stat.st_size:x}-{stat.st_mtime_ns:x}"'
    if request.headers.get("If-None-Match") == etag:
        unchanged = HttpResponseNotModified()
        unchanged["ETag"] = etag
        return unchanged
    asked = request.headers.get("Range", "")
    if request.headers.get("If-Range", etag) != etag:
        asked = ""
    span = _span(asked, stat.st_size)
    if span is None:
        refusal = problem_response(
            status=416, code="bad_range", sentence="This part of the recording does not exist."
        )
        refusal["Content-Range"] = f"bytes */{stat.st_size}"
        return refusal
    start, end = span
    response: HttpResponseBase
    if request.method == "HEAD":
        response = HttpResponse(content_type=media_type)
    else:
        response = StreamingHttpResponse(_pieces(path, start, end), content_type=media_type)
    if end - start < stat.st_size:
        response.status_code = 206
        response["Content-Range"] = f"bytes {start}-{end - 1}/{stat.st_size}"
    response["Content-Length"] = str(end - start)
    response["Content-Disposition"] = "inline"
    response["Accept-Ranges"] = "bytes"
    response["ETag"] = etag
    # Rights may change: each use is checked, and shared caches keep nothing.
    response["Cache-Control"] = "private, no-cache"
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _span(header: str, size: int) -> tuple[int, int] | None:
    """[start, end) of the one range asked for; None where it lies outside.

    Several ranges, or another unit, may be ignored (RFC 9110 14.2): the whole is sent.
    """
    match = _RANGE.fullmatch(header.replace(" ", ""))
    if match is None or match[0] == "bytes=-":
        return 0, size
    first, last = match.groups()
    if not first:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1 if last else size)
    if last and first and int(last) < int(first):
        return 0, size
    return (start, end) if start < end else None


async def _pieces(path: Path, start: int, end: int) -> AsyncIterator[bytes]:
    file = await asyncio.to_thread(path.open, "rb")
    try:
        await asyncio.to_thread(file.seek, start)
        while start < end:
            piece = await asyncio.to_thread(file.read, min(PIECE_BYTES, end - start))
            if not piece:
                return
            start += len(piece)
            yield piece
    finally:
        file.close()
