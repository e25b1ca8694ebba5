"""Errors as problem JSON (RFC 9457), and the border of every REST view.

The one place that maps ProductError and EngineError to a status. `code` is stable.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import structlog
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.http.request import UnreadablePostError
from django.views.decorators.csrf import csrf_exempt

from asr_engine.errors import AdmissionError, AudioError, EngineError
from transcription.api.allowances import count_request, tell_allowance
from transcription.api.authentication import authenticate
from transcription.errors import (
    InvalidInputError,
    MissingScopeError,
    NotAuthenticatedError,
    ProductError,
)
from transcription.services import rate_limits
from webapp.accounts.models import Scope

log = structlog.get_logger(__name__)

MEDIA_TYPE: Final = "application/problem+json"


def problem_response(
    *, status: int, code: str, sentence: str, is_retryable: bool = False
) -> JsonResponse:
    """`detail` is the sentence for people, `code` the word for programs, and `title` that word
    as people read it: it names the kind, and is the same each time."""
    response = JsonResponse(
        {
            "type": "about:blank",
            "title": code.replace("_", " ").capitalize(),
            "status": status,
            "detail": sentence,
            "code": code,
            "is_retryable": is_retryable,
        },
        status=status,
        content_type=MEDIA_TYPE,
        json_dumps_params={"ensure_ascii": False},
    )
    response["Cache-Control"] = "no-store"
    if status == NotAuthenticatedError.status:
        response["WWW-Authenticate"] = "Bearer"
    return response


def problem_of(error: ProductError | EngineError) -> JsonResponse:
    """The answer for an error that was raised on purpose."""
    if isinstance(error, MissingScopeError):
        return _lacks_scope(error)
    if isinstance(error, ProductError):
        status, sentence = error.status, error.text
    else:
        sentence = error.sentence
        if isinstance(error, AudioError):
            status = 422
        else:
            status = 503 if isinstance(error, AdmissionError) else 500
    return problem_response(
        status=status, code=error.code, sentence=sentence, is_retryable=error.is_retryable
    )


def _lacks_scope(error: MissingScopeError) -> JsonResponse:
    """In the header too, as tools that speak OAuth look there (RFC 6750, section 3.1)."""
    response = problem_response(status=error.status, code=error.code, sentence=error.text)
    response["WWW-Authenticate"] = f'Bearer error="insufficient_scope", scope="{error.scope}"'
    return response


View = Callable[..., HttpResponseBase]


def endpoint(
    *methods: str, scope: Scope, kind: rate_limits.Kind = rate_limits.Kind.FILE
) -> Callable[[View], View]:
    """Make `view(request, user, …)` a REST view for `methods` and those who are authenticated: by
    cookie, or by a token with `scope`. Their requests are counted as `kind`.

    Errors become problem JSON; somebody who follows a link in a page gets a page instead: the
    log-in, or the error's own.
    """

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def guarded(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
            response = answer(request, **arguments)
            tell_allowance(request, response)
            return response

        def answer(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
            wants_page = "text/html" in request.headers.get("Accept", "")
            try:
                user = authenticate(request, scope=scope)
                count_request(request, rate_limits.person(user), kind)
                if request.method not in methods:
                    return not_allowed(methods)
                return view(request, user, **arguments)
            except NotAuthenticatedError as error:
                if wants_page:
                    return redirect_to_login(request.get_full_path())
                return problem_of(error)
            except ProductError as error:
                if wants_page:
                    raise
                return problem_of(error)
            except EngineError as error:
                return problem_of(error)
            except UnreadablePostError:  # the client has gone; nobody reads this answer
                return problem_of(InvalidInputError())
            except Exception:
                log.exception("request_failed")
                return problem_of(ProductError())

        return csrf_exempt(guarded)

    return decorate


def not_allowed(methods: Sequence[str]) -> JsonResponse:
    """The answer to a method that an address does not know."""
    response = problem_response(
        status=405, code="method_not_allowed", sentence="This address does not know this method."
    )
    response["Allow"] = ", ".join(methods)
    return response
