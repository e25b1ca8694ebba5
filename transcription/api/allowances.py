"""How often a caller may ask, as HTTP tells it: counted at the border, told in the standard
headers, refused with 429."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from transcription.errors import TooFastError
from transcription.services import rate_limits
from transcription.services.rate_limits import Allowance, Kind


def count_request(request: HttpRequest, who: str, kind: Kind) -> None:
    """Count `request` as one of `who` (`rate_limits.person` or `.address`).

    What is left is kept with it for `tell_allowance`. Raises TooFastError for one too many.
    """
    allowance = rate_limits.take(who, kind)
    request.allowance = allowance  # type: ignore[attr-defined]  # see `access.ApiRequest`
    if allowance.is_spent:
        raise TooFastError("Too many requests in this minute. Wait, and go on.")


def tell_allowance(request: HttpRequest, response: HttpResponseBase) -> None:
    """In the headers of the answer, where `request` was counted."""
    allowance: Allowance | None = getattr(request, "allowance", None)
    if allowance is None:
        return
    response["RateLimit-Limit"] = str(allowance.limit)
    response["RateLimit-Remaining"] = str(allowance.remaining)
    response["RateLimit-Reset"] = str(allowance.reset_s)
    if allowance.is_spent:
        response["Retry-After"] = str(allowance.reset_s)
