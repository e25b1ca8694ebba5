"""Who may call an operation of REST v1, how often, and what a view knows about it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja.security.base import AuthBase

from transcription.api.allowances import count_request
from transcription.api.authentication import authenticate
from transcription.errors import NotFoundError
from transcription.services import rate_limits
from transcription.services.rate_limits import Allowance
from webapp.accounts.models import Scope, User


class ApiRequest(HttpRequest):
    """A request that has passed `Access`."""

    auth: User
    allowance: Allowance


class Access(AuthBase):
    """The person of the session cookie, or the owner of a token that is for `scope`.

    Counts the request: the border tells the caller what is left (`ApiRequest.allowance`).
    """

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self.scope = scope

    def __call__(self, request: HttpRequest) -> Any:
        user = authenticate(request, scope=self.scope)
        count_request(request, rate_limits.person(user), rate_limits.Kind.REQUEST)
        return user


class AdministratorAccess(Access):
    """The same for administrators. For everybody else there is nothing here."""

    def __call__(self, request: HttpRequest) -> Any:
        user = super().__call__(request)
        if not user.is_administrator:
            raise NotFoundError
        return user


READS = Access(Scope.RECORDINGS_READ)
WRITES = Access(Scope.RECORDINGS_WRITE)
READS_LIVE = Access(Scope.LIVE_READ)
WRITES_LIVE = Access(Scope.LIVE_WRITE)
ADMINISTERS = AdministratorAccess(Scope.ADMINISTRATION)
