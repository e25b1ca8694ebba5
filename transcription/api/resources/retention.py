"""Retention: how long things are kept, what a change would do, and what each purge did."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from ninja import Schema
from pydantic import Field

from transcription.api.words import Body, Line, Whole
from transcription.models import PurgeRun, RetentionPolicy
from transcription.services.purge_plan import Night
from transcription.services.retention_rules import MAX_DAYS, Rules

Days = Annotated[Whole, Field(ge=1, le=MAX_DAYS)] | None


class RulesOut(Body):
    """Days; null keeps for ever, and of a team means: as the organisation's."""

    transcript_days: Days = None
    audio_days: Days = None
    live_audio_days: Days = None
    failed_days: Days = None
    trash_days: Days = None

    def read(self) -> Rules:
        return Rules(
            transcript_days=self.transcript_days,
            audio_days=self.audio_days,
            live_audio_days=self.live_audio_days,
            failed_days=self.failed_days,
            trash_days=self.trash_days,
        )


class PolicyIn(RulesOut):
    """New rules, of one team or (null) of the organisation."""

    team: Whole | None = None


class PolicyOut(RulesOut):
    """Rules that wait to take effect; until then they may be taken back."""

    id: int
    team: int | None
    takes_effect_at: datetime

    @staticmethod
    def of(policy: RetentionPolicy) -> PolicyOut:
        return PolicyOut(
            id=policy.pk,
            team=policy.team_id,
            takes_effect_at=policy.takes_effect_at,
            transcript_days=policy.transcript_days,
            audio_days=policy.audio_days,
            live_audio_days=policy.live_audio_days,
            failed_days=policy.failed_days,
            trash_days=policy.trash_days,
        )


class TeamRules(RulesOut):
    """What a team's own rules say."""

    team: int


class RetentionOut(Schema):
    """The rules in force, and those that wait."""

    organisation: RulesOut
    teams: list[TeamRules]
    waiting: list[PolicyOut]


class NightOut(Schema):
    """What the purge of one night will do, as far as that can be known before."""

    at: datetime
    audio: Annotated[int, Field(description="Recordings whose audio is removed.")]
    audio_bytes: int
    trashed: int
    deleted: int
    deleted_bytes: int
    others: Annotated[int, Field(description="Refused uploads, and sessions without audio.")]

    @staticmethod
    def of(night: Night) -> NightOut:
        return NightOut(
            at=night.at,
            audio=night.audio,
            audio_bytes=night.audio_bytes,
            trashed=night.trashed,
            deleted=night.deleted,
            deleted_bytes=night.deleted_bytes,
            others=night.others,
        )


class PreviewOut(Schema):
    """What a change would do, night by night, from its first one on. Nothing is stored."""

    takes_effect_at: datetime
    nights: list[NightOut]


class PurgeRunOut(Schema):
    """One purge: what went, how many of each kind and how many bytes."""

    id: int
    started_at: datetime
    finished_at: datetime | None
    counts: dict[str, Any]
    problem: str

    @staticmethod
    def of(run: PurgeRun) -> PurgeRunOut:
        return PurgeRunOut(
            id=run.pk,
            started_at=run.started_at,
            finished_at=run.finished_at,
            counts=run.counts,
            problem=run.problem,
        )


class HoldIn(Body):
    """Why nobody may delete it, nor any policy."""

    reason: Annotated[Line, Field(min_length=1, max_length=300)]


class HoldOut(Schema):
    """Whether a recording is held."""

    is_held: bool
    reason: str
