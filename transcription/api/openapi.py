"""The description of REST v1 by itself: `/api/v1/openapi.json`, and the page to try it on."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from ninja import NinjaAPI
from ninja.openapi.docs import DocsBase
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from transcription.api.access import WRITES, Access
from transcription.api.intake import TUS_PATHS
from transcription.api.problems import MEDIA_TYPE
from transcription.api.repetition import HEADER, LONGEST_KEY

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
    "description": "RFC 9457. `code` is stable, `title` the same for people, `detail` a sentence.",
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
PARAMETERS: Final = {
    "IdempotencyKey": {
        "in": "header",
        "name": HEADER,
        "required": False,
        "schema": {
            "type": "string",
            "minLength": 1,
            "maxLength": LONGEST_KEY,
            "pattern": "^[!-~]+$",
        },
        "description": "Send the same key again with the same request: it is done once, and "
        "answered alike for a day.",
    },
    "IfMatch": {
        "in": "header",
        "name": "If-Match",
        "required": False,
        "schema": {"type": "string"},
        "description": "The `ETag` of what you read: if it has changed since, 412.",
    },
    "IfNoneMatch": {
        "in": "header",
        "name": "If-None-Match",
        "required": False,
        "schema": {"type": "string"},
        "description": "The `ETag` of what you have: if it has not changed, 304.",
    },
}
HEADERS: Final = {
    "ETag": {"description": "Of this state of the thing.", "schema": {"type": "string"}},
    "RateLimitLimit": {
        "description": "Requests of a minute.",
        "schema": {"type": "integer"},
    },
    "RateLimitRemaining": {
        "description": "Those that are left.",
        "schema": {"type": "integer"},
    },
    "RateLimitReset": {
        "description": "Seconds until all are there again.",
        "schema": {"type": "integer"},
    },
    "RetryAfter": {
        "description": "With 429: seconds to wait.",
        "schema": {"type": "integer"},
    },
}
LIMIT_HEADERS: Final = {
    "RateLimit-Limit": {"$ref": "#/components/headers/RateLimitLimit"},
    "RateLimit-Remaining": {"$ref": "#/components/headers/RateLimitRemaining"},
    "RateLimit-Reset": {"$ref": "#/components/headers/RateLimitReset"},
}


class Description(OpenAPISchema):
    """What django-ninja finds out, with our security, our errors and our headers."""

    def get_paths(self) -> dict[str, Any]:
        paths = super().get_paths()
        for path, methods in TUS_PATHS.items():
            paths[f"{self.path_prefix}{path}"] = {
                method: {**details, "tags": ["recordings"], "security": _security([WRITES])}
                for method, details in methods.items()
            }
        return paths

    def operation_security(self, operation: Operation) -> list[dict[str, Any]] | None:
        return _security(operation.auth_callbacks)

    def operation_parameters(self, operation: Operation) -> list[dict[str, Any]]:
        parameters = super().operation_parameters(operation)
        names = []
        if getattr(operation.view_func, "is_done_once", False):
            names.append("IdempotencyKey")
        if getattr(operation.view_func, "checks_tag", False):
            names.append("IfMatch")
        if 304 in operation.response_models:
            names.append("IfNoneMatch")
        refs = [{"$ref": f"#/components/parameters/{name}"} for name in names]
        return [*parameters, *refs]

    def responses(self, operation: Operation) -> dict[Any, dict[str, Any]]:
        responses = super().responses(operation)
        has_tag = 304 in operation.response_models or hasattr(operation.view_func, "checks_tag")
        for status, details in responses.items():
            details["headers"] = {**LIMIT_HEADERS}
            if has_tag and status in {200, 304}:
                details["headers"]["ETag"] = {"$ref": "#/components/headers/ETag"}
        return {**responses, "default": {"$ref": "#/components/responses/Problem"}}

    def get_components(self) -> dict[str, Any]:
        return {
            "schemas": {**self.schemas, "Problem": PROBLEM},
            "securitySchemes": SECURITY_SCHEMES,
            "parameters": PARAMETERS,
            "headers": HEADERS,
            "responses": {
                "Problem": {
                    "description": "It was not done; `detail` says why.",
                    "headers": {
                        **LIMIT_HEADERS,
                        "Retry-After": {"$ref": "#/components/headers/RetryAfter"},
                    },
                    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
                }
            },
        }


class DocsPage(DocsBase):
    """Swagger UI from our own static files, without inline script."""

    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        settings = {
            "url": self.get_openapi_url(api, kwargs),
            "deepLinking": True,
            "validatorUrl": None,  # else the page would ask a server on the internet
            "supportedSubmitMethods": ["get", "post", "put", "patch", "delete"],
        }
        return render(request, "api/docs.html", {"api": api, "settings": settings})


def _security(auths: Any) -> list[dict[str, Any]]:
    scopes = [auth.scope.value for auth in auths if isinstance(auth, Access)]
    return [{"token": scopes}, {"session": []}]
