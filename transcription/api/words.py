"""Text as it may come in requests."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator


def _without_nul(text: str) -> str:
    """PostgreSQL stores no NUL, and nobody writes one."""
    if "\0" in text:
        raise ValueError("a text holds no NUL")
    return text


Line = Annotated[str, AfterValidator(_without_nul)]
