"""How REST v1 answers: JSON, entity tags, and edits that a changed thing refuses.

The tag of a resource is a hash of what is sent of it. A GET with `If-None-Match` gets 304 while
nothing has changed; an edit with `If-Match` is refused with 412 once something has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final, TypeVar

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseNotModified
from django.utils.http import parse_etags
from ninja.renderers import BaseRenderer
from pydantic import BaseModel
from pydantic_core import to_json

from transcription.errors import ChangedMeanwhileError

MEDIA_TYPE: Final = "application/json"

View = TypeVar("View", bound=Callable[..., HttpResponse])


class JsonRenderer(BaseRenderer):
    """One way to write times, here and in `tagged`."""

    media_type = MEDIA_TYPE

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> bytes:
        return to_json(data)


def tag_of(resource: BaseModel) -> str:
    """A strong entity tag."""
    return f'"{hashlib.sha256(to_json(resource)).hexdigest()[:24]}"'


def tagged(
    request: HttpRequest, resource: BaseModel, *, status: int = 200, location: str = ""
) -> HttpResponse:
    """The resource with its tag; 304 for a reader who has it already."""
    tag = tag_of(resource)
    response: HttpResponse
    if request.method == "GET" and tag in parse_etags(request.headers.get("If-None-Match", "")):
        response = HttpResponseNotModified()
    else:
        response = HttpResponse(to_json(resource), content_type=MEDIA_TYPE, status=status)
    response["ETag"] = tag
    response["Cache-Control"] = "private, no-cache"
    if location:
        response["Location"] = request.build_absolute_uri(location)
    return response


def checks_tag(view: View) -> View:
    """Marks an edit that calls `check_unchanged`, for the description."""
    view.checks_tag = True  # type: ignore[attr-defined]
    return view


def check_unchanged(request: HttpRequest, current: BaseModel) -> None:
    """Call it in the transaction of the edit, which holds the row.

    Raises ChangedMeanwhileError where `If-Match` names another state than `current`.
    """
    known = parse_etags(request.headers.get("If-Match", ""))
    if known and known != ["*"] and tag_of(current) not in known:
        raise ChangedMeanwhileError
