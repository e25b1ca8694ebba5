"""REST v1: the one object that all its routers hang on, at `/api/v1/`."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.urls import URLPattern
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from transcription.api import (
    glossary,
    intake,
    jobs,
    live_captions,
    live_sessions,
    recordings,
    retention,
    shares,
    teams,
    transcripts,
    users,
    webhooks,
)
from transcription.api.answers import JsonRenderer
from transcription.api.border import guarded, handle_errors
from transcription.api.openapi import Description, DocsPage

DESCRIPTION = """Everything that the pages can do, for tools.

Each request carries `Authorization: Bearer <token>`. Errors are problem JSON (RFC 9457). Lists come
in pages: `next_cursor` of one is the `cursor` of the next. Times are UTC; positions in audio are
whole milliseconds.
"""


class RestApi(NinjaAPI):
    """django-ninja with our border around each path, and our own description."""

    @property
    def urls(self) -> tuple[list[Any], str, str]:
        patterns, app_name, namespace = super().urls
        for pattern in patterns:
            if isinstance(pattern, URLPattern):
                pattern.callback = guarded(pattern.callback)
        return patterns, app_name, namespace

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        prefix = self.get_root_path(path_params or {}) if path_prefix is None else path_prefix
        return _describe(self, prefix)

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """The view's name: clients are generated from it."""
        return operation.view_func.__name__


@cache
def _describe(api: RestApi, prefix: str) -> OpenAPISchema:
    """Once: it takes a while, and anybody may ask for it."""
    return Description(api=api, path_prefix=prefix)


api = RestApi(
    title="Transcription server",
    version="1",
    description=DESCRIPTION,
    renderer=JsonRenderer(),
    docs=DocsPage(),
    docs_url="/docs",
    urls_namespace="api-v1",
)
handle_errors(api)
api.add_router("/recordings", recordings.router, tags=["recordings"])
api.add_router("/recordings", shares.of_recordings, tags=["recordings"])
api.add_router("/recordings", transcripts.router, tags=["transcripts"])
api.add_router("/recordings", glossary.of_recordings, tags=["glossary"])
api.add_router("/recordings", jobs.of_recordings, tags=["jobs"])
api.add_router("/uploads", intake.router, tags=["recordings"])
api.add_router("/jobs", jobs.router, tags=["jobs"])
api.add_router("/live-sessions", live_sessions.router, tags=["live sessions"])
api.add_router("/live-sessions", live_captions.router, tags=["live sessions"])
api.add_router("/live-sessions", shares.of_live_sessions, tags=["live sessions"])
api.add_router("/glossary", glossary.router, tags=["glossary"])
api.add_router("/users", users.router, tags=["administration"])
api.add_router("/teams", teams.router, tags=["administration"])
api.add_router("/retention", retention.router, tags=["administration"])
api.add_router("/webhooks", webhooks.router, tags=["webhooks"])
