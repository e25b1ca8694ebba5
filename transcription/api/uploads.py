"""Resumable uploads: a server of the tus protocol 1.0 (https://tus.io/protocols/resumable-upload).

Extensions: creation, expiration, termination. An upload's metadata are its `filename`, the
`language` spoken (a code, `mul` where several mix, nothing to detect it), its `speakers` (`count`,
their number, or nothing: they are not told apart) and whether it is `draft_only`.

A piece is at most what the web process accepts as a body (16 MB); its bytes go to disk from a
spooled file, 256 KB at a time, away from the event loop (a synchronous view runs in a thread). What
an upload becomes is decided in `services.uploads`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Final
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import http_date

from transcription import selectors
from transcription.api.answers import tagged
from transcription.api.problems import endpoint, problem_response
from transcription.api.resources.uploads import UploadOut
from transcription.errors import InvalidInputError, TooLargeError
from transcription.models import Upload, UploadState
from transcription.services import uploads
from transcription.services.job_options import read_options
from transcription.services.rate_limits import Kind
from webapp.accounts.models import Scope, User

TUS_VERSION: Final = "1.0.0"
EXTENSIONS: Final = "creation,expiration,termination"
PIECE_TYPE: Final = "application/offset+octet-stream"
READ_BYTES: Final = 256 * 1024
MAX_METADATA_BYTES: Final = 4096
MAX_LENGTH_DIGITS: Final = 18
TRUE: Final = frozenset({"true", "1"})


@endpoint("POST", "OPTIONS", scope=Scope.RECORDINGS_WRITE, kind=Kind.PIECE)
def upload_collection(request: HttpRequest, user: User) -> HttpResponse:
    """POST makes an upload; OPTIONS says what this server can do."""
    if request.method == "OPTIONS":
        return _options()
    refusal = _refuse_version(request)
    return refusal or _create(request, user)


@endpoint(
    "GET",
    "HEAD",
    "PATCH",
    "POST",
    "DELETE",
    "OPTIONS",
    scope=Scope.RECORDINGS_WRITE,
    kind=Kind.PIECE,
)
def upload_resource(request: HttpRequest, user: User, upload_id: UUID) -> HttpResponse:
    """HEAD tells the offset, PATCH appends at it, DELETE forgets the upload.

    GET, which is no part of tus, tells how it stands and why it was refused.
    """
    if request.method == "OPTIONS":
        return _options()
    if request.method == "GET":
        return tagged(request, UploadOut.of(selectors.access_upload_by_id(user, upload_id)))
    refusal = _refuse_version(request)
    if refusal is not None:
        return refusal
    upload = selectors.access_upload_by_id(user, upload_id)
    # Proxies that know neither PATCH nor DELETE let POST through.
    method = request.method
    if method == "POST":
        method = request.headers.get("X-HTTP-Method-Override", "").upper()
    if method == "PATCH":
        return _append(request, upload)
    if method == "DELETE":
        uploads.cancel_upload(upload=upload)
        return _respond(204)
    if method == "HEAD":
        return _describe(upload)
    return problem_response(
        status=405, code="method_not_allowed", sentence="This address does not know this method."
    )


def _create(request: HttpRequest, user: User) -> HttpResponse:
    metadata = _parse_metadata(request.headers.get("Upload-Metadata", ""))
    upload = uploads.create_upload(
        owner=user,
        display_name=metadata.get("filename", ""),
        length_bytes=_parse_bytes(request, "Upload-Length"),
        options=read_options(
            language=metadata.get("language", ""),
            speakers=metadata.get("speakers", ""),
            is_draft_only=metadata.get("draft_only", "") in TRUE,
        ),
    )
    response = _respond(201, upload)
    response["Location"] = request.build_absolute_uri(reverse("api_upload", args=[upload.id]))
    return response


def _append(request: HttpRequest, upload: Upload) -> HttpResponse:
    if request.content_type != PIECE_TYPE:
        return problem_response(
            status=415,
            code="unsupported_media_type",
            sentence=f"A piece of an upload has the content type {PIECE_TYPE}.",
        )
    offset_bytes = _parse_bytes(request, "Upload-Offset")
    if offset_bytes + _announced_bytes(request) > upload.length_bytes:
        raise TooLargeError("There are more bytes than this upload announced.")
    upload = uploads.append_upload(
        upload=upload, offset_bytes=offset_bytes, chunks=_read_chunks(request)
    )
    response = _respond(204, upload)
    response["Upload-Offset"] = str(upload.offset_bytes)
    return response


def _describe(upload: Upload) -> HttpResponse:
    response = _respond(200, upload)
    response["Upload-Offset"] = str(upload.offset_bytes)
    response["Upload-Length"] = str(upload.length_bytes)
    return response


def _options() -> HttpResponse:
    response = _respond(204)
    response["Tus-Version"] = TUS_VERSION
    response["Tus-Extension"] = EXTENSIONS
    response["Tus-Max-Size"] = str(settings.SITE.max_upload_bytes)
    return response


def _refuse_version(request: HttpRequest) -> HttpResponse | None:
    if request.headers.get("Tus-Resumable") == TUS_VERSION:
        return None
    response = problem_response(
        status=412,
        code="tus_version",
        sentence=f"Uploads speak version {TUS_VERSION} of the tus protocol.",
    )
    response["Tus-Version"] = TUS_VERSION
    return response


def _respond(status: int, upload: Upload | None = None) -> HttpResponse:
    response = HttpResponse(status=status)
    response["Tus-Resumable"] = TUS_VERSION
    response["Cache-Control"] = "no-store"
    if upload is not None and upload.state == UploadState.RECEIVING:
        response["Upload-Expires"] = http_date(uploads.expiry_of(upload).timestamp())
    return response


def _read_chunks(request: HttpRequest) -> Iterator[bytes]:
    while chunk := request.read(READ_BYTES):
        yield chunk


def _announced_bytes(request: HttpRequest) -> int:
    """Length of the body where it is announced; what comes without a length is counted later."""
    value = request.headers.get("Content-Length") or "0"
    return int(value) if value.isascii() and value.isdigit() else 0


def _parse_bytes(request: HttpRequest, name: str) -> int:
    value = request.headers.get(name, "")
    if not (value.isascii() and value.isdigit() and len(value) <= MAX_LENGTH_DIGITS):
        raise InvalidInputError(f"{name} must be a number of bytes.")
    return int(value)


def _parse_metadata(header: str) -> dict[str, str]:
    """`key base64,key base64`; raises InvalidInputError."""
    if len(header) > MAX_METADATA_BYTES:
        raise InvalidInputError("Upload-Metadata is too long.")
    metadata = {}
    for pair in filter(None, (part.strip() for part in header.split(","))):
        key, _, value = pair.partition(" ")
        try:
            metadata[key] = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise InvalidInputError("Upload-Metadata must be base64 of UTF-8 text.") from None
    return metadata
