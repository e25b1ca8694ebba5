"""What every page behind a link does: it needs no log-in, and tells nobody of its address.

A link's address is a key. It is blanked in the logs, and no page behind it tells another site, or a
search engine, of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from transcription.errors import ProductError
from transcription.models import ShareLink
from transcription.pages.errors import PAGES, Sentences, error_page

View = Callable[[HttpRequest, ShareLink], HttpResponse]
Opener = Callable[..., ShareLink]
ADVICE = "Ask the person who sent you the link for a new one."


def behind_link(open_link: Opener, *, closed: str) -> Callable[[View], Callable[..., HttpResponse]]:
    """A view of what the token in the address leads to, or a refusal that says why, under the title
    `closed`. `open_link` is a function of `services.share_links`."""

    def decorate(view: View) -> Callable[..., HttpResponse]:
        @functools.wraps(view)
        @never_cache
        @require_safe
        def guarded(request: HttpRequest, token: str) -> HttpResponse:
            try:
                link = open_link(token=token, address=request.META.get("REMOTE_ADDR", ""))
                response = view(request, link)
            except ProductError as error:
                said = PAGES[error.status]
                response = error_page(
                    request,
                    error.status,
                    Sentences(closed, error.text, ADVICE, leads_home=False)
                    if error.status == 404
                    else Sentences(said.title, error.text, said.advice, leads_home=False),
                )
            response["Referrer-Policy"] = "no-referrer"
            response["X-Robots-Tag"] = "noindex, nofollow"
            return response

        return guarded

    return decorate
