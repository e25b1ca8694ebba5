"""Words, keys and bodies as they may come in requests."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict

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


Line = Annotated[str, AfterValidator(_without_nul)]


def check_key(key: int) -> int:
    """A key of the database. Raises NotFoundError for a number that none can be."""
    if not 0 < key < MOST_KEY:
        raise NotFoundError
    return key
