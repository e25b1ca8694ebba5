"""What accounts refuse on purpose.

    PeopleError           it cannot be done in the present state of people and teams
    └── InvalidPersonError    what was asked for is itself wrong

`code`, `status` and `text` mean what they mean in the errors of the product.
"""

from __future__ import annotations

from typing import ClassVar


class PeopleError(Exception):
    """Base of the tree; the sentence is for people."""

    code: ClassVar[str] = "conflict"
    status: ClassVar[int] = 409
    is_retryable: ClassVar[bool] = False

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.text = sentence


class InvalidPersonError(PeopleError):
    code = "invalid_input"
    status = 400
