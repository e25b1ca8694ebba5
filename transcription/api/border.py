"""The border of every operation of REST v1: what leaves it is what was declared, or problem JSON.

Maps the errors of django-ninja and of Django's request parsing; those of the product are mapped in
`problems`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import structlog
from asgiref.sync import iscoroutinefunction
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.http.request import UnreadablePostError
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from asr_engine.errors import EngineError, place_of
from transcription.api.allowances import tell_allowance
from transcription.api.problems import not_allowed, problem_of, problem_response
from transcription.errors import InvalidInputError, NotFoundError, ProductError, TooLargeError
from webapp.accounts.errors import PeopleError

log = structlog.get_logger(__name__)

METHOD_NOT_ALLOWED: Final = 405
_SUBJECT: Final = re.compile(r"^(?:[A-Z][A-Za-z]* (?=should )|Value error, )")
"""What the checking library calls the value that we call by its name."""

View = Callable[..., Any]


def handle_errors(api: NinjaAPI) -> None:
    """Answer each error that an operation of `api` may raise."""
    api.add_exception_handler(ProductError, _product_error)
    api.add_exception_handler(EngineError, _product_error)
    api.add_exception_handler(PeopleError, _people_error)
    api.add_exception_handler(ValidationError, _validation_error)
    api.add_exception_handler(Http404, lambda request, error: problem_of(NotFoundError()))
    api.add_exception_handler(HttpError, _unreadable)
    api.add_exception_handler(RequestDataTooBig, lambda request, error: problem_of(TooLargeError()))
    api.add_exception_handler(SuspiciousOperation, _unreadable)
    api.add_exception_handler(MultiPartParserError, _unreadable)
    api.add_exception_handler(UnreadablePostError, _unreadable)
    api.add_exception_handler(Exception, _unforeseen)


def guarded(view: View) -> View:
    """`view` of one path of the API, for all its methods."""
    if iscoroutinefunction(view):

        async def guarded_async(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
            answer: Awaitable[HttpResponseBase] = view(request, **arguments)
            return _finished(request, await answer)

        guarded_async.csrf_exempt = True  # type: ignore[attr-defined]  # `authenticate` checks it
        return guarded_async

    def guarded_sync(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
        return _finished(request, view(request, **arguments))

    guarded_sync.csrf_exempt = True  # type: ignore[attr-defined]  # `authenticate` checks it
    return guarded_sync


@csrf_exempt
def nothing_here(request: HttpRequest) -> HttpResponse:
    """Every address of the API that leads nowhere."""
    return problem_of(NotFoundError())


def _finished(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if response.status_code == METHOD_NOT_ALLOWED:
        return not_allowed(sorted(response["Allow"].split(", ")))
    tell_allowance(request, response)
    if "Cache-Control" not in response:
        # Rights may change: each use is checked, and shared caches keep nothing.
        response["Cache-Control"] = "private, no-cache"
    return response


def _product_error(request: HttpRequest, error: Any) -> HttpResponse:
    return problem_of(error)


def _people_error(request: HttpRequest, error: Any) -> HttpResponse:
    return problem_response(
        status=error.status, code=error.code, sentence=error.text, is_retryable=error.is_retryable
    )


def _validation_error(request: HttpRequest, error: Any) -> HttpResponse:
    """An address whose id is none leads nowhere; anything else says what is wrong where."""
    problems = error.errors
    if any(problem["loc"][0] == "path" for problem in problems):
        return problem_of(NotFoundError())
    return problem_of(InvalidInputError(_sentence_of(problems[0])))


def _sentence_of(problem: Mapping[str, Any]) -> str:
    """In the words of this product: `titel is not known here.`"""
    place, *parts = problem["loc"]
    if place == "body":
        parts = parts[1:]  # our own name of the whole body comes first
    where = ".".join(str(part) for part in parts) or f"The {place}"
    match problem["type"]:
        case "extra_forbidden":
            return f"{where} is not known here."
        case "missing":
            return f"{where} is missing."
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"{where} should be a JSON object."
    said = _SUBJECT.sub("", problem["msg"])
    return f"{where}{' ' if said.startswith('should ') else ': '}{said}."


def _unreadable(request: HttpRequest, error: Any) -> HttpResponse:
    return problem_of(InvalidInputError())


def _unforeseen(request: HttpRequest, error: Any) -> HttpResponse:
    # Its text could quote what was said, so only its kind and its place are logged.
    log.error("request_failed", error=type(error).__name__, place=place_of(error))
    return problem_of(ProductError())
