"""Who reads what in tests."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from transcription.models import LiveSession, OpenedContent, Recording, Share
from webapp.accounts.models import Team, User


def share(thing: Recording | LiveSession, *, with_: User | Team, can_edit: bool = False) -> Share:
    """A row without its message to open pages."""
    return Share.objects.create(
        recording=thing if isinstance(thing, Recording) else None,
        session=thing if isinstance(thing, LiveSession) else None,
        person=with_ if isinstance(with_, User) else None,
        team=with_ if isinstance(with_, Team) else None,
        can_edit=can_edit,
    )


def make_team(name: str, *members: User) -> Team:
    team = Team.objects.create(name=name)
    team.members.add(*members)
    return team


def open_for(
    administrator: User, thing: Recording | LiveSession, *, minutes: int = 30
) -> OpenedContent:
    return OpenedContent.objects.create(
        administrator=administrator,
        recording=thing if isinstance(thing, Recording) else None,
        session=thing if isinstance(thing, LiveSession) else None,
        reason="Asked to look by the owner",
        closes_at=timezone.now() + timedelta(minutes=minutes),
    )
