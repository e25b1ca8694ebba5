"""The border of the OpenAI-compatible views: who may, and errors in the shape that clients read.

An error is problem JSON, as everywhere, with OpenAI's own `error` object in it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog
from channels.db import database_sync_to_async
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import HttpRequest, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.http.request import UnreadablePostError
from django.http.response import HttpResponseBase

from asr_engine.errors import EngineError
from transcription.api.access import Access
from transcription.api.border import guarded
from transcription.api.problems import not_allowed, problem_of, problem_response
from transcription.errors import InvalidInputError, ProductError, TooLargeError
from webapp.accounts.models import Scope, User

log = structlog.get_logger(__name__)

TRANSCRIBES: Final = Access(Scope.TRANSCRIBE)
UNREADABLE: Final = (SuspiciousOperation, MultiPartParserError, UnreadablePostError)

View = Callable[..., Awaitable[HttpResponseBase]]


class RefusedError(Exception):
    """What became of a recording, in its own code and sentence."""

    def __init__(self, *, status: int, code: str, sentence: str) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.sentence = sentence


def endpoint(method: str) -> Callable[[View], Callable[..., Any]]:
    """Make `view(request, user, …)` a view for `method` and tokens that may transcribe."""

    def decorate(view: View) -> Callable[..., Any]:
        @functools.wraps(view)
        async def bordered(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
            try:
                if request.method != method:
                    return _with_error(not_allowed([method]))
                user: User = await in_thread(TRANSCRIBES)(request)
                return await view(request, user, **arguments)
            except Exception as error:  # noqa: BLE001 - the border
                return refusal(error)

        return guarded(bordered)

    return decorate


def in_thread(function: Callable[..., Any]) -> Any:
    """`function` in a thread of the process's pool, which it gives back with its database
    connection: Django's own keeps one of each for as long as the client waits."""
    return database_sync_to_async(function, thread_sensitive=False)


def refusal(error: Exception) -> JsonResponse:
    """The answer for what a view raised."""
    if isinstance(error, RefusedError):
        problem = problem_response(status=error.status, code=error.code, sentence=error.sentence)
    elif isinstance(error, ProductError | EngineError):
        problem = problem_of(error)
    elif isinstance(error, RequestDataTooBig):
        problem = problem_of(TooLargeError())
    elif isinstance(error, UNREADABLE):
        problem = problem_of(InvalidInputError())
    else:
        log.error("request_failed", exc_info=error)
        problem = problem_of(ProductError())
    return _with_error(problem)


def _with_error(problem: JsonResponse) -> JsonResponse:
    said = json.loads(problem.content)
    is_theirs = problem.status_code < 500
    said["error"] = {
        "message": said["detail"],
        "type": "invalid_request_error" if is_theirs else "server_error",
        "param": None,
        "code": said["code"],
    }
    problem.content = json.dumps(said, ensure_ascii=False).encode()
    return problem
