"""`docs/asyncapi.yaml` as a judge of real messages."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml

PATH = Path(__file__).resolve().parent.parent.parent / "docs" / "asyncapi.yaml"


@cache
def description() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(PATH.read_text())
    return read


@cache
def validator(message: str) -> jsonschema_rs.Draft202012Validator:
    """Of a message's payload."""
    schema = {
        "$ref": f"#/components/messages/{message}/payload",
        "components": description()["components"],
    }
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)


def messages_of(operation: str) -> list[str]:
    """Names of what is sent (`tell`) or taken (`speak`)."""
    references = description()["operations"][operation]["messages"]
    return [reference["$ref"].rsplit("/", 1)[1] for reference in references]


def matching(operation: str, message: dict[str, Any]) -> list[str]:
    """Which of the operation's messages `message` is; exactly one for what is described."""
    return [name for name in messages_of(operation) if validator(name).is_valid(message)]
