"""Who is asking: the person of the session cookie, or the owner of a bearer token.

A token does what its scopes say, a cookie all that its person may.

A request with a token cannot be forged by another site; one with a cookie can, so it must pass
Django's CSRF check. The views behind `endpoint` are therefore exempt from the middleware's own.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware

from transcription.errors import ForbiddenError, NotAuthenticatedError, TooFastError
from transcription.services import rate_limits
from transcription.services.token_access import open_token
from webapp.accounts.models import Scope, User


class _CsrfCheck(CsrfViewMiddleware):
    """Django's check, asked by us; `_reject` is its one hook for the answer."""

    def __init__(self) -> None:
        super().__init__(lambda request: HttpResponse())

    def _reject(self, request: HttpRequest, reason: str) -> HttpResponse:
        return HttpResponse(status=403)


def authenticate(request: HttpRequest, *, scope: Scope) -> User:
    """Raises NotAuthenticatedError, and TooFastError where too many wrong tokens came from there;
    MissingScopeError for a token that is not for `scope`; ForbiddenError for a cookie without the
    CSRF token."""
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        try:
            return open_token(secret.strip(), scope).user
        except NotAuthenticatedError:
            remote = rate_limits.address(request.META.get("REMOTE_ADDR", ""))
            if rate_limits.take(remote, rate_limits.Kind.REFUSED_TOKEN).is_spent:
                raise TooFastError from None
            raise
    if not isinstance(request.user, User) or not request.user.is_active:
        raise NotAuthenticatedError
    check = _CsrfCheck()
    check.process_request(request)
    if check.process_view(request, HttpResponse, (), {}) is not None:
        raise ForbiddenError
    return request.user
