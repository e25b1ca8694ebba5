"""The log of the site's processes: a static event name and structured fields, one line each.

`console` is for people, `json` for a collector. A log never holds what people said, how they named
things or what they log in with: fields of those names are blanked here, whoever wrote them.
"""

from __future__ import annotations

import logging
import re
from typing import Any, Final, Literal

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

PRIVATE_FIELDS: Final = frozenset(
    {
        "text",
        "words",
        "transcript",
        "title",
        "display_name",
        "email",
        "password",
        "token",
        "secret",
        "cookie",
        "authorization",
    }
)


_KEYS: Final = re.compile(r"(/password/reset/key/|(?<![\w/])/[rs]/)[^\s\"'?#]+")
"""Addresses that are keys: who has one may set a password, or read captions or a recording."""


def without_keys(text: str) -> str:
    """`text` with the secret part of such addresses replaced."""
    return _KEYS.sub(r"\1[private]", text)


def blank_keys(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Django names the path of a request that it refuses or fails on in its message."""
    event["event"] = without_keys(str(event.get("event", "")))
    return event


def blank_private_fields(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Replace the values of PRIVATE_FIELDS, so that a careless call cannot leak them."""
    for name in PRIVATE_FIELDS & event.keys():
        event[name] = "[private]"
    return event


class HasTraceback(logging.Filter):
    """Of Django's complaints about requests keep those with a traceback: the access log, which
    names no query, has the others."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.exc_info is not None


def drop_objects(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Leave out the live objects that libraries attach: a request's text holds its query."""
    for name in ("request", "data", "server_time"):
        event.pop(name, None)
    return event


_SHARED: Final[list[Processor]] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    drop_objects,
    blank_private_fields,
    blank_keys,
]


# Without local variables, which hold words and tokens; structlog's own choice shows them, and takes
# seconds of the event loop to draw them.
_TRACEBACKS: Final = structlog.processors.ExceptionRenderer(
    structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
)


def configure_structlog() -> None:
    """Send structlog's events through the standard library, where LOGGING formats them."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def logging_settings(*, level: str, log_format: Literal["console", "json"]) -> dict[str, Any]:
    """Django's LOGGING: everything to standard output, by one formatter."""
    renderers: list[Processor] = (
        [_TRACEBACKS, structlog.processors.JSONRenderer()]
        if log_format == "json"
        else [
            structlog.dev.ConsoleRenderer(
                colors=False, pad_event_to=30, exception_formatter=structlog.dev.plain_traceback
            )
        ]
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"has_traceback": {"()": HasTraceback}},
        "formatters": {
            "structured": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": _SHARED,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    *renderers,
                ],
            }
        },
        "handlers": {
            "standard_output": {
                "class": "logging.StreamHandler",
                "stream": "ext://sys.stdout",
                "formatter": "structured",
            }
        },
        "root": {"handlers": ["standard_output"], "level": level},
        "loggers": {
            # The access log has each request already; these would say it twice.
            "daphne": {"level": "WARNING"},
            "django.request": {"level": "ERROR", "filters": ["has_traceback"]},
            # Two lines for each of the small tasks that run every few seconds.
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
        },
    }
