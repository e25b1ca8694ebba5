"""People: as others see them, and as administrators do."""

from __future__ import annotations

from ninja import Schema

from webapp.accounts.models import User


class PersonName(Schema):
    """Who somebody is."""

    id: int
    name: str

    @staticmethod
    def of(user: User) -> PersonName:
        return PersonName(id=user.pk, name=str(user))
