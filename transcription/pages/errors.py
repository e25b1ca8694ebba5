"""Error pages in plain words: what happened, what is safe, what to do next.

Owns the handlers that `webapp.urls` and `webapp.settings` name, and the middleware that turns a
ProductError raised by a page into its page. REST and sockets answer for themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.deprecation import MiddlewareMixin

from transcription.errors import ConflictError, ProductError


@dataclass(frozen=True, slots=True)
class Sentences:
    """What an error page says."""

    title: str
    happened: str
    advice: str
    leads_home: bool = True
    """To a page that asks guests to log in."""


PAGES = {
    400: Sentences(
        "This request could not be understood",
        "What the browser sent does not fit what the page expects. Nothing was changed.",
        "Go back, load the page again, and try once more.",
    ),
    401: Sentences(
        "Please log in",
        "This needs a person who has logged in. Nothing was changed.",
        "Log in, and come back to this page.",
    ),
    403: Sentences(
        "This is not yours to do",
        "Your account may not do this. Nothing was changed.",
        "If you think that it should, ask an administrator.",
    ),
    404: Sentences(
        "There is nothing here",
        "The page does not exist, was deleted, or is not shared with you.",
        "Ask the person who sent you the address, or look among your recordings.",
    ),
    409: Sentences(
        "This cannot be done now",
        "The thing has changed since this page was loaded. Nothing was changed by you.",
        "Go back and load the page again to see how it stands.",
    ),
    412: Sentences(
        "This has changed meanwhile",
        "Somebody else changed the thing since it was read. Nothing was changed by you.",
        "Load the page again to see how it stands.",
    ),
    413: Sentences(
        "This is too large",
        "The server refused the request because of its size. Nothing was changed.",
        "Add recordings on the home page: they travel in pieces and may be large.",
    ),
    422: Sentences(
        "This request came before",
        "It carries the key of another request. Nothing was done.",
        "Send it with a key of its own.",
    ),
    423: Sentences(
        "This is in use",
        "Another page or program works on the same thing. Nothing was changed by you.",
        "Wait a moment, and try again.",
    ),
    429: Sentences(
        "This was too often",
        "The server refused to go on at this pace. Nothing was changed.",
        "Wait a minute, and try again.",
    ),
    500: Sentences(
        "Something went wrong on the server",
        "The fault is ours, and it was noted. Your recordings and captions are safe.",
        "Try again in a moment. If it stays, tell an administrator what you did.",
    ),
    503: Sentences(
        "The server is busy",
        "It cannot take this on at the moment. What was stored before is safe.",
        "Try again in a moment.",
    ),
    507: Sentences(
        "The server's disk is full",
        "There is no room to store this. What was stored before is safe.",
        "Tell an administrator, and try again when there is room.",
    ),
}
KNOWN_ADVICE = "Go back to the page where you were, to do something else."
CSRF_SENTENCES = Sentences(
    "This page was open too long",
    "Its protection against forged requests has run out. Nothing was changed.",
    "Go back, load the page again, and repeat what you did. Cookies must be allowed here.",
)


def error_page(
    request: HttpRequest, status: int, sentences: Sentences | None = None
) -> HttpResponse:
    """The page for `status`; a fragment's request gets the one sentence that its page shows."""
    said = sentences or PAGES[status]
    if request.headers.get("HX-Request") == "true":
        sentence = f"{said.happened} {said.advice}"
        return HttpResponse(sentence, content_type="text/plain; charset=utf-8", status=status)
    return render(request, "error.html", {"status": status, "said": said}, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_page(request, 413 if isinstance(exception, RequestDataTooBig) else 400)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_page(request, 403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_page(request, 404)


def too_many_requests(request: HttpRequest) -> HttpResponse:
    return error_page(request, 429)


def server_error(request: HttpRequest) -> HttpResponse:
    """Rendered without the request: nothing that may have failed is touched again."""
    page = render_to_string("error.html", {"status": 500, "said": PAGES[500], "is_bare": True})
    return HttpResponse(page, status=500)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return error_page(request, 403, CSRF_SENTENCES)


class ProductErrorMiddleware(MiddlewareMixin):
    """A ProductError that leaves a page's view becomes the page for its status."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, ProductError) or exception.status not in PAGES:
            return None
        said = PAGES[exception.status]
        if exception.text != type(exception).sentence:
            # What an error says by itself need not be for a page that is out of date.
            advice = KNOWN_ADVICE if exception.status == ConflictError.status else said.advice
            said = Sentences(said.title, exception.text, advice)
        return error_page(request, exception.status, said)
