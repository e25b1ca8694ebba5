"""When the time of a thing is over: the rules that every purge, dry run and preview go by.

Pure: no clock, no database. A day is 24 hours, and what is exactly so old is over. Where nothing is
said, things are kept. A recording ends in steps: its audio may go first; then the recording moves
to the trash, from where its owner may take it back; then it is deleted with all that belongs to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

MAX_DAYS: Final = 36_500


class Ending(StrEnum):
    """A step of a recording's end."""

    AUDIO = "audio"
    """Its audio is removed, for good; the transcript stays."""
    TRASH = "trash"
    """It moves to the trash."""
    DELETE = "delete"
    """It is deleted out of the trash, for good."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Days for which things are kept; None keeps them. Raises ValueError for days below 1.

    `transcript_days` is the life of a whole recording, `audio_days` and `live_audio_days` that of
    the audio of an upload and of a live session, `failed_days` that of what became no transcript,
    `trash_days` the time of grace in the trash.
    """

    audio_days: int | None = None
    live_audio_days: int | None = None
    transcript_days: int | None = None
    failed_days: int | None = None
    trash_days: int | None = None

    def __post_init__(self) -> None:
        for rule in fields(self):
            days = getattr(self, rule.name)
            if days is not None and not 1 <= days <= MAX_DAYS:
                raise ValueError(f"{rule.name} must be 1 to {MAX_DAYS} days, or nothing")

    def or_else(self, others: Rules) -> Rules:
        """These rules, and `others` where these say nothing."""
        return Rules(
            **{
                rule.name: getattr(others, rule.name)
                if getattr(self, rule.name) is None
                else getattr(self, rule.name)
                for rule in fields(self)
            }
        )


UNLESS_SAID_OTHERWISE: Final = Rules(trash_days=30)
"""In force while the organisation has no policy: nothing ends by its age but the trash."""


@dataclass(frozen=True, slots=True)
class RuleBook:
    """The rules in force at one moment, for each team and for what belongs to none."""

    organisation: Rules = UNLESS_SAID_OTHERWISE
    teams: Mapping[int, Rules] = field(default_factory=dict)

    def of(self, team_id: int | None) -> Rules:
        if team_id is None or team_id not in self.teams:
            return self.organisation
        return self.teams[team_id].or_else(self.organisation)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules look at in one recording.

    `failed_at` is the end of its last transcription, where none of them left a transcript;
    `is_busy` says that one is under way or waits; `expires_at` is a date of the recording's own.
    """

    created_at: datetime
    is_live: bool = False
    has_audio: bool = True
    failed_at: datetime | None = None
    expires_at: datetime | None = None
    trashed_at: datetime | None = None
    is_held: bool = False
    is_busy: bool = False


@dataclass(frozen=True, slots=True)
class Dates:
    """From when on each step is due; None: by no rule."""

    audio_at: datetime | None = None
    trash_at: datetime | None = None
    delete_at: datetime | None = None


def dates_of(facts: Facts, rules: Rules) -> Dates:
    """When each step of a recording's end is due, whatever happens to it meanwhile.

    A hold stands above everything. A date of its own stands above the ages of audio, transcript and
    failure, earlier or later; in the trash, the time of grace counts.
    """
    if facts.is_held:
        return Dates()
    audio_at = trash_at = delete_at = None
    if facts.expires_at is None and facts.has_audio:
        days = rules.live_audio_days if facts.is_live else rules.audio_days
        audio_at = days_after(facts.created_at, days)
    if facts.trashed_at is not None:
        delete_at = days_after(facts.trashed_at, rules.trash_days)
    elif facts.expires_at is not None:
        trash_at = facts.expires_at
    else:
        trash_at = _earliest(
            days_after(facts.created_at, rules.transcript_days),
            days_after(facts.failed_at, rules.failed_days),
        )
    return Dates(audio_at=audio_at, trash_at=trash_at, delete_at=delete_at)


def due_steps(facts: Facts, rules: Rules, now: datetime) -> tuple[Ending, ...]:
    """The steps that a purge takes at `now`; none for what is in flight."""
    if facts.is_busy:
        return ()
    dates = dates_of(facts, rules)
    if is_over(dates.delete_at, now):
        return (Ending.DELETE,)
    steps = ((Ending.AUDIO, dates.audio_at), (Ending.TRASH, dates.trash_at))
    return tuple(step for step, at in steps if is_over(at, now))


def days_after(moment: datetime | None, days: int | None) -> datetime | None:
    """None where one of them is nothing, or where the calendar ends before."""
    if moment is None or days is None:
        return None
    try:
        return moment + timedelta(days=days)
    except OverflowError:
        return None


def is_over(moment: datetime | None, now: datetime) -> bool:
    return moment is not None and moment <= now


def _earliest(*moments: datetime | None) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)
