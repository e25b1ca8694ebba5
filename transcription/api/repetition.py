"""`Idempotency-Key`: a view that makes something makes it once, however often the request comes."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final
from uuid import UUID

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.http import HttpResponse
from pydantic import BaseModel
from pydantic_core import to_json

from transcription.api.access import ApiRequest
from transcription.errors import InvalidInputError
from transcription.models import IdempotentRequest
from transcription.services import idempotency

HEADER: Final = "Idempotency-Key"
LONGEST_KEY: Final = 255
KEPT_HEADERS: Final = ("Content-Type", "ETag", "Location")
REPEATED_HEADER: Final = "Idempotent-Replayed"

_KEY: Final = re.compile(rf"[!-~]{{1,{LONGEST_KEY}}}")

View = Callable[..., HttpResponse]


def once_by_key(*, in_one_transaction: bool = True) -> Callable[[View], View]:
    """For a view that returns a response.

    `in_one_transaction`: what the view does and its answer are stored together. Otherwise a process
    that is killed between the two lets the view run again.
    """

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def once(request: ApiRequest, **arguments: Any) -> HttpResponse:
            key = request.headers.get(HEADER)
            if key is None:
                return view(request, **arguments)
            if not _KEY.fullmatch(key):
                raise InvalidInputError(
                    f"{HEADER} has between 1 and {LONGEST_KEY} visible characters of ASCII."
                )
            claim = idempotency.claim_request(
                user=request.auth, key=key, fingerprint=_fingerprint(request, arguments)
            )
            if claim.status is not None:
                return _again(claim)
            try:
                with transaction.atomic() if in_one_transaction else nullcontext():
                    response = view(request, **arguments)
                    _store(claim, response)
            except BaseException:
                idempotency.give_up(request=claim)
                raise
            return response

        # django-ninja looks the names of annotations up in the module of what it is given.
        once.__signature__ = inspect.signature(view, eval_str=True)  # type: ignore[attr-defined]
        once.is_done_once = True  # type: ignore[attr-defined]  # for the description
        return once

    return decorate


def _store(claim: IdempotentRequest, response: HttpResponse) -> None:
    idempotency.store_answer(
        request=claim,
        status=response.status_code,
        headers={name: response[name] for name in KEPT_HEADERS if name in response},
        body=response.content.decode(),
    )


def _again(claim: IdempotentRequest) -> HttpResponse:
    response = HttpResponse(claim.body, status=claim.status, headers=claim.headers)
    response["Cache-Control"] = "private, no-cache"
    response[REPEATED_HEADER] = "true"
    return response


def _fingerprint(request: ApiRequest, arguments: dict[str, Any]) -> str:
    """Of what was asked, not of its bytes: a repeated form has another boundary."""
    digest = hashlib.sha256(f"{request.method} {request.path}".encode())
    for name in sorted(arguments):
        digest.update(b"\0" + name.encode() + b"\0")
        for piece in _pieces(arguments[name]):
            digest.update(piece)
    return digest.hexdigest()


def _pieces(value: Any) -> Any:
    if isinstance(value, UploadedFile):
        yield (value.name or "").encode()
        yield from value.chunks()
        value.seek(0)
    elif isinstance(value, BaseModel | UUID | str | int | type(None)):
        yield to_json(value)
