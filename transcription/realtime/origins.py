"""Which origins may open a socket."""

from __future__ import annotations

from typing import Any

from channels.security.websocket import OriginValidator
from django.conf import settings


class BrowserOriginValidator(OriginValidator):
    """A page of another site may not use a person's cookie.

    A browser always names the origin; a tool, which has no cookie to steal, need not.
    """

    def valid_origin(self, parsed_origin: Any) -> bool:
        return parsed_origin is None or bool(self.validate_origin(parsed_origin))


def browser_origin_validator(application: Any) -> BrowserOriginValidator:
    """Checks `ALLOWED_HOSTS` and `CSRF_TRUSTED_ORIGINS`."""
    return BrowserOriginValidator(
        application, [*settings.ALLOWED_HOSTS, *settings.CSRF_TRUSTED_ORIGINS]
    )
