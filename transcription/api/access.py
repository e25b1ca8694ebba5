"""Who may call an operation of REST v1, and what a view knows about it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja.security.base import AuthBase

from transcription.api.authentication import authenticate
from webapp.accounts.models import Scope, User


class ApiRequest(HttpRequest):
    """A request that has passed `Access`."""

    auth: User


class Access(AuthBase):
    """The person of the session cookie, or the owner of a token that is for `scope`."""

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self.scope = scope

    def __call__(self, request: HttpRequest) -> Any:
        return authenticate(request, scope=self.scope)
