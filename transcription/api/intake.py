"""REST v1: recordings on their way in, as they stand. Their bytes come by tus: see `uploads`."""

from __future__ import annotations

from typing import Any, Final

from ninja import Query, Router, Schema

from transcription import selectors
from transcription.api.access import WRITES, ApiRequest
from transcription.api.cursors import Page, Paging, newest_first
from transcription.api.resources.uploads import UploadOut
from transcription.models import UploadState

router = Router()


class UploadFilter(Schema):
    """Which of your uploads."""

    state: UploadState | None = None


@router.get("", auth=WRITES, response=Page[UploadOut])
def list_uploads(
    request: ApiRequest, wanted: Query[UploadFilter], paging: Query[Paging]
) -> Page[UploadOut]:
    """Your uploads, the newest first: those that go on, wait for their check, or were refused."""
    own = selectors.uploads_of(request.auth)
    if wanted.state is not None:
        own = own.filter(state=wanted.state)
    rows, next_cursor = newest_first(own, paging, by="created_at")
    return Page(items=[UploadOut.of(row) for row in rows], next_cursor=next_cursor)


_UPLOAD_ID: Final = {
    "in": "path",
    "name": "upload_id",
    "required": True,
    "schema": {"type": "string", "format": "uuid"},
}
_VERSION: Final = {
    "in": "header",
    "name": "Tus-Resumable",
    "required": True,
    "schema": {"type": "string", "example": "1.0.0"},
    "description": "`1.0.0`; other versions of the protocol get 412.",
}
_PROBLEM: Final = {"default": {"$ref": "#/components/responses/Problem"}}


def _header(name: str, text: str, *, is_required: bool = True) -> dict[str, Any]:
    schema = {"type": "integer", "minimum": 0} if name != "Upload-Metadata" else {"type": "string"}
    return {
        "in": "header",
        "name": name,
        "required": is_required,
        "schema": schema,
        "description": text,
    }


TUS_PATHS: Final[dict[str, dict[str, Any]]] = {
    "uploads/": {
        "post": {
            "operationId": "begin_upload",
            "summary": "Begin Upload",
            "description": "Make room for a recording that comes in pieces (tus 1.0, creation).",
            "parameters": [
                _VERSION,
                _header("Upload-Length", "All of its bytes."),
                _header(
                    "Upload-Metadata",
                    "`filename`, `language`, `speakers`, `draft_only`: `key base64,…`.",
                    is_required=False,
                ),
            ],
            "responses": {
                "201": {"description": "`Location` is where its pieces go."},
                **_PROBLEM,
            },
        }
    },
    "uploads/{upload_id}": {
        "get": {
            "operationId": "read_upload",
            "summary": "Read Upload",
            "description": "How an upload stands; once it is `accepted` there is a recording.",
            "parameters": [_UPLOAD_ID],
            "responses": {
                "200": {
                    "description": "OK",
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/UploadOut"}}
                    },
                },
                "304": {"description": "You have it already."},
                **_PROBLEM,
            },
        },
        "head": {
            "operationId": "find_upload_offset",
            "summary": "Find Upload Offset",
            "description": "`Upload-Offset` says where to go on.",
            "parameters": [_UPLOAD_ID, _VERSION],
            "responses": {"200": {"description": "OK"}, **_PROBLEM},
        },
        "patch": {
            "operationId": "append_upload",
            "summary": "Append Upload",
            "description": "Write a piece of at most 16 MB; after the last one the upload is "
            "checked.",
            "parameters": [
                _UPLOAD_ID,
                _VERSION,
                _header("Upload-Offset", "Where this piece belongs."),
            ],
            "requestBody": {
                "required": True,
                "content": {
                    "application/offset+octet-stream": {
                        "schema": {"type": "string", "format": "binary"}
                    }
                },
            },
            "responses": {"204": {"description": "It is on disk."}, **_PROBLEM},
        },
        "delete": {
            "operationId": "cancel_upload",
            "summary": "Cancel Upload",
            "description": "Forget an upload and its bytes.",
            "parameters": [_UPLOAD_ID, _VERSION],
            "responses": {"204": {"description": "It is gone."}, **_PROBLEM},
        },
    },
}
"""What `uploads` does, which speaks a protocol of its own."""
