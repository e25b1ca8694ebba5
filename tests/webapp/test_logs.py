"""Logs hold events and numbers, never what people said or how they named things."""

from __future__ import annotations

import io
import json
import logging
import logging.config
from collections.abc import Iterator

import pytest
import structlog

from webapp.logs import PRIVATE_FIELDS, logging_settings


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What a JSON log writes. (structlog is configured once: a second time would part loggers that
    have been used from it.)"""
    stream = io.StringIO()
    settings = logging_settings(level="INFO", log_format="json")
    handler = settings["handlers"]["standard_output"]
    handler["stream"] = stream
    settings["loggers"] = {}
    before = logging.getLogger().handlers[:]
    logging.config.dictConfig(settings)
    yield stream
    logging.getLogger().handlers[:] = before


@pytest.mark.parametrize("field", sorted(PRIVATE_FIELDS))
def test_private_fields_are_blanked_whoever_logs_them(lines: io.StringIO, field: str) -> None:
    structlog.get_logger("a").info("thing_happened", **{field: "what she said"})
    logging.getLogger("b").info("thing_happened", extra={field: "what she said"})
    written = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [line[field] for line in written] == ["[private]", "[private]"]
    assert "what she said" not in lines.getvalue()


def test_one_line_of_json_has_level_time_and_fields(lines: io.StringIO) -> None:
    structlog.get_logger("engine").warning("stream_closed", session="s", lag_ms=7)
    line = json.loads(lines.getvalue())
    assert line["event"] == "stream_closed"
    assert line["level"] == "warning"
    assert line["logger"] == "engine"
    assert line["lag_ms"] == 7
    assert line["timestamp"].endswith("Z")


def test_addresses_that_are_keys_are_blanked(lines: io.StringIO) -> None:
    logging.getLogger("django.security.csrf").warning("Forbidden (%s): %s", "x", "/s/s3cret/room/")
    logging.getLogger("a").error("Internal Server Error: %s", "/accounts/password/reset/key/s3cret")
    logging.getLogger("a").error("gone: /static/s/plain.css")
    assert "s3cret" not in lines.getvalue()
    assert "/s/[private]" in lines.getvalue()
    assert "/static/s/plain.css" in lines.getvalue()


def test_objects_that_libraries_attach_are_left_out(lines: io.StringIO) -> None:
    logging.getLogger("a").error("gone_wrong", extra={"request": "<GET /?q=secret>"})
    assert "secret" not in lines.getvalue()


def test_traceback_stays_on_one_line(lines: io.StringIO) -> None:
    try:
        int("detail")
    except ValueError:
        logging.getLogger("a").exception("request_failed")
    assert len(lines.getvalue().splitlines()) == 1
