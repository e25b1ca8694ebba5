"""Words, keys and bodies as they may come in requests."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict

from transcription.errors import NotFoundError

MOST_KEY: Final = 2**63
"""What a database takes for a whole number."""


def _without_nul(text: str) -> str:
    """PostgreSQL stores no NUL, and nobody writes one."""
    if "\0" in text:
        raise ValueError("a text holds no NUL")
    return text


class Body(BaseModel):
    """A JSON object of a request. A member that nobody knows is refused: it may be misspelt."""

    model_config = ConfigDict(extra="forbid")


def _no_truth(value: object) -> object:
    """In Python true is 1; in JSON it is no number."""
    if isinstance(value, bool):
        raise ValueError("a number is no truth value")  # noqa: TRY004  # pydantic wants this one
    return value


Whole = Annotated[int, BeforeValidator(_no_truth)]
Number = Annotated[float, BeforeValidator(_no_truth)]


def _as_written(value: object) -> object:
    """A date and a time, and not a number of seconds, which pydantic would take as well."""
    if not isinstance(value, str) or "-" not in value[1:]:
        raise ValueError("a time is written as 2027-03-04T09:00:00Z")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_as_written)]
Line = Annotated[str, AfterValidator(_without_nul)]


def check_key(key: int) -> int:
    """A key of the database. Raises NotFoundError for a number that none can be."""
    if not 0 < key < MOST_KEY:
        raise NotFoundError
    return key
