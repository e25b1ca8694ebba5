"""Lists in pages, by a cursor that says after which row the next one begins.

Not django-ninja's own: its cursor counts rows of the same time, so that one which goes meanwhile
hides another, and a broken one is an error of the server. Here a page begins after a time and a
key, and what is added or deleted between two requests moves nothing else.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Generic, TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet, UUIDField
from ninja import Schema
from pydantic import Field

from transcription.api.words import MOST_KEY
from transcription.errors import InvalidInputError

ITEMS_A_PAGE: Final = 50
MOST_ITEMS: Final = 200
MAX_CURSOR_CHARACTERS: Final = 200

Row = TypeVar("Row", bound=Model)
Item = TypeVar("Item")


class Paging(Schema):
    """Which page of a list."""

    limit: Annotated[int, Field(ge=1, le=MOST_ITEMS, description="Items of one page.")] = (
        ITEMS_A_PAGE
    )
    cursor: Annotated[
        str,
        Field(max_length=MAX_CURSOR_CHARACTERS, description="`next_cursor` of the page before."),
    ] = ""


class Page(Schema, Generic[Item]):
    """A page of a list, the newest first. Without `next_cursor` it is the last one."""

    items: list[Item]
    next_cursor: str | None = None


def in_order(rows: QuerySet[Row], paging: Paging, *, by: str) -> tuple[list[Row], str | None]:
    """A page of `rows` ordered by the unique number in the field `by`, and where the next begins.

    Raises InvalidInputError for a cursor that this list has not given.
    """
    if paging.cursor:
        rows = rows.filter(**{f"{by}__gt": _read(paging.cursor, int)[0]})
    found = list(rows.order_by(by)[: paging.limit + 1])
    page = found[: paging.limit]
    if len(found) <= paging.limit:
        return page, None
    return page, _write(getattr(page[-1], by))


def newest_first(rows: QuerySet[Row], paging: Paging, *, by: str) -> tuple[list[Row], str | None]:
    """A page of `rows` ordered by the time in the field `by`, and where the next one begins.

    Raises InvalidInputError for a cursor that this list has not given.
    """
    key = rows.model._meta.pk  # noqa: SLF001  # Django's documented name
    name = key.attname
    if paging.cursor:
        kind = UUID if isinstance(key, UUIDField) else int
        at, last = _read(paging.cursor, _moment, kind)
        rows = rows.filter(Q(**{f"{by}__lt": at}) | Q(**{by: at, f"{name}__lt": last}))
    found = list(rows.order_by(f"-{by}", f"-{name}")[: paging.limit + 1])
    page = found[: paging.limit]
    if len(found) <= paging.limit:
        return page, None
    return page, _write(getattr(page[-1], by).isoformat(), page[-1].pk)


def _write(*position: object) -> str:
    written = json.dumps([str(part) for part in position], separators=(",", ":"))
    return base64.urlsafe_b64encode(written.encode()).decode().rstrip("=")


def _read(cursor: str, *kinds: Callable[[str], Any]) -> list[Any]:
    """The position that `_write` made of values of these `kinds`."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        parts = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        read = [kind(part) for kind, part in zip(kinds, parts, strict=True)]
    except (ValueError, TypeError, AttributeError, OverflowError, binascii.Error):
        raise InvalidInputError("This cursor is none that the list has given.") from None
    if any(isinstance(part, int) and not 0 <= part < MOST_KEY for part in read):
        raise InvalidInputError("This cursor is none that the list has given.")
    return read


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
