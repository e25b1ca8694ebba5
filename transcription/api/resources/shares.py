"""Shares: who besides its owner reads or changes something."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from ninja import Schema
from pydantic import Field, StrictBool

from transcription.api.resources.people import PersonName, TeamName
from transcription.api.words import Body, Line
from transcription.models import Share


class ShareOut(Schema):
    """With one person, or with one team."""

    id: int
    person: PersonName | None
    team: TeamName | None
    can_edit: bool
    created_at: datetime

    @staticmethod
    def of(share: Share) -> ShareOut:
        team = share.team
        return ShareOut(
            id=share.pk,
            person=None if share.person is None else PersonName.of(share.person),
            team=None if team is None else TeamName.of(team),
            can_edit=share.can_edit,
            created_at=share.created_at,
        )


class SharesOut(Schema):
    """Everybody with whom it is shared."""

    shares: list[ShareOut]


class ShareIn(Body):
    """Either the e-mail address of a `person`, or the name of a `team`."""

    person: Annotated[Line, Field(max_length=254)] | None = None
    team: Annotated[Line, Field(max_length=100)] | None = None
    can_edit: Annotated[
        StrictBool, Field(description="Not only read: rename, name speakers, …")
    ] = False
