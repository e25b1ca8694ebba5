"""Lists in pages, by a cursor that says after which row the next one begins.

Not django-ninja's own: its cursor counts rows of the same time, so that one which goes meanwhile
hides another, and a broken one is an error of the server. Here a page begins after a time and a
key, and what is added or deleted between two requests moves nothing else.
"""

from __future__ import annotations

import base64
import binascii
import json
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Generic, TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet
from ninja import Schema
from pydantic import Field

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


def newest_first(rows: QuerySet[Row], paging: Paging, *, by: str) -> tuple[list[Row], str | None]:
    """A page of `rows` ordered by the time in the field `by`, and where the next one begins.

    Raises InvalidInputError for a cursor that this list has not given.
    """
    key = rows.model._meta.pk.attname  # noqa: SLF001  # Django's documented name
    if paging.cursor:
        at, last = _read(paging.cursor, rows.model)
        rows = rows.filter(Q(**{f"{by}__lt": at}) | Q(**{by: at, f"{key}__lt": last}))
    found = list(rows.order_by(f"-{by}", f"-{key}")[: paging.limit + 1])
    page = found[: paging.limit]
    if len(found) <= paging.limit:
        return page, None
    return page, _write(getattr(page[-1], by), page[-1].pk)


def _write(at: datetime, key: Any) -> str:
    written = json.dumps([at.isoformat(), str(key)], separators=(",", ":"))
    return base64.urlsafe_b64encode(written.encode()).decode().rstrip("=")


def _read(cursor: str, model: type[Model]) -> tuple[datetime, Any]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        at, key = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        moment = datetime.fromisoformat(at).astimezone(UTC)
        is_by_uuid = model._meta.pk.get_internal_type() == "UUIDField"  # noqa: SLF001
        return moment, UUID(key) if is_by_uuid else int(key)
    except (ValueError, TypeError, AttributeError, OverflowError, binascii.Error):
        raise InvalidInputError("This cursor is none that the list has given.") from None
