"""The description of REST v1 by itself: `/api/v1/openapi.json`, and the page to try it on."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from ninja import NinjaAPI
from ninja.openapi.docs import DocsBase
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from transcription.api.access import Access
from transcription.api.problems import MEDIA_TYPE

PROBLEM_REF: Final = {"$ref": "#/components/responses/Problem"}
SECURITY_SCHEMES: Final = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token from your profile, or of a service account. It has scopes.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "sessionid",
        "description": "The log-in of a browser; a change needs the header X-CSRFToken as well.",
    },
}
PROBLEM: Final = {
    "type": "object",
    "description": "RFC 9457. `code` is stable, `detail` is a sentence for people.",
    "required": ["type", "title", "status", "detail", "code", "is_retryable"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "is_retryable": {"type": "boolean"},
    },
}


class Description(OpenAPISchema):
    """What django-ninja finds out, with our security, our errors and our headers."""

    def operation_security(self, operation: Operation) -> list[dict[str, Any]] | None:
        scopes = [auth.scope for auth in operation.auth_callbacks if isinstance(auth, Access)]
        return [{"token": [scope.value for scope in scopes]}, {"session": []}]

    def responses(self, operation: Operation) -> dict[Any, dict[str, Any]]:
        return {**super().responses(operation), "default": PROBLEM_REF}

    def get_components(self) -> dict[str, Any]:
        return {
            "schemas": {**self.schemas, "Problem": PROBLEM},
            "securitySchemes": SECURITY_SCHEMES,
            "responses": {
                "Problem": {
                    "description": "It was not done; `detail` says why.",
                    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
                }
            },
        }


class DocsPage(DocsBase):
    """Swagger UI from our own static files, without inline script."""

    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        settings = {
            "url": self.get_openapi_url(api, kwargs),
            "deepLinking": True,
            "validatorUrl": None,  # else the page would ask a server on the internet
            "supportedSubmitMethods": ["get", "post", "put", "patch", "delete"],
        }
        return render(request, "api/docs.html", {"api": api, "settings": settings})
