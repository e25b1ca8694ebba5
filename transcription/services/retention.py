"""Retention policies, and what is said of one recording: a date of its own, a hold, its team.

A policy is never changed: a new one takes effect at night, after a day at least, so that its effect
can be looked at (`purge_plan.preview`) and the change taken back before anything is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, fields
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from transcription.errors import ConflictError, InvalidInputError, NotFoundError
from transcription.models import Recording, RetentionPolicy
from transcription.services.retention_rules import (
    MAX_DAYS,
    UNLESS_SAID_OTHERWISE,
    RuleBook,
    Rules,
)
from webapp.accounts.audit import record_act
from webapp.accounts.errors import PeopleError
from webapp.accounts.models import Act, Team, User

DAY: Final = timedelta(days=1)
MAX_REASON_CHARACTERS: Final = 300
NAMES: Final = tuple(rule.name for rule in fields(Rules))


def rule_book(at: datetime) -> RuleBook:
    """The rules in force at `at`, unless somebody changes them until then."""
    return book_at(at, RetentionPolicy.objects.all())


def policies_with(proposed: RetentionPolicy) -> list[RetentionPolicy]:
    """All policies as they would be with `proposed`, which takes the place of one that waits."""
    waits = Q(team=proposed.team, takes_effect_at__gt=timezone.now())
    return [*RetentionPolicy.objects.exclude(waits), proposed]


def book_at(at: datetime, policies: Iterable[RetentionPolicy]) -> RuleBook:
    """Of each team's policies the one counts that took effect last."""
    organisation, teams = UNLESS_SAID_OTHERWISE, {}
    for policy in sorted(policies, key=lambda policy: (policy.takes_effect_at, policy.pk or 0)):
        if policy.takes_effect_at > at:
            continue
        if policy.team_id is None:
            organisation = rules_of(policy)
        else:
            teams[policy.team_id] = rules_of(policy)
    return RuleBook(organisation=organisation, teams=teams)


def rules_of(policy: RetentionPolicy) -> Rules:
    """Raises ValueError for days that no policy may have."""
    return Rules(**{name: getattr(policy, name) for name in NAMES})


def next_night(now: datetime) -> datetime:
    """The next time at which a purge begins: strictly after `now`."""
    night = now.replace(hour=settings.SITE.purge_hour, minute=0, second=0, microsecond=0)
    return night if night > now else night + DAY


def effect_of_change(now: datetime) -> datetime:
    """When a change that is made at `now` takes effect: at night, with a day to take it back."""
    return next_night(now + DAY)


def waiting_policies() -> list[RetentionPolicy]:
    """Changes that have not taken effect yet, the next first."""
    return list(
        RetentionPolicy.objects.filter(takes_effect_at__gt=timezone.now())
        .select_related("team", "created_by")
        .order_by("takes_effect_at", "id")
    )


def draft_policy(*, team: Team | None, rules: Rules) -> RetentionPolicy:
    """A policy that is not stored, as its preview needs it. Raises InvalidInputError."""
    audio = (rules.audio_days, rules.live_audio_days)
    if rules.transcript_days and any(days and days > rules.transcript_days for days in audio):
        raise InvalidInputError(
            "Audio cannot be kept for longer than the transcript: the recording goes with it."
        )
    return RetentionPolicy(
        team=team, takes_effect_at=effect_of_change(timezone.now()), **asdict(rules)
    )


def change_policy(*, team: Team | None, rules: Rules, changed_by: User) -> RetentionPolicy:
    """Let new rules take effect, in the place of a change that waits. Raises InvalidInputError."""
    with transaction.atomic():
        policy = draft_policy(team=team, rules=rules)
        policy.created_by = changed_by
        RetentionPolicy.objects.filter(team=team, takes_effect_at__gt=timezone.now()).delete()
        policy.save(force_insert=True)
        record_act(
            act=Act.POLICY_CHANGED,
            actor=changed_by,
            on=policy,
            detail={
                "team": "" if team is None else team.name,
                "takes_effect_at": policy.takes_effect_at.isoformat(),
                **asdict(rules),
            },
        )
    return policy


def take_back_policy(*, policy: RetentionPolicy, taken_back_by: User) -> None:
    """Forget a change before it takes effect. Raises ConflictError afterwards."""
    with transaction.atomic():
        waiting = RetentionPolicy.objects.filter(id=policy.id, takes_effect_at__gt=timezone.now())
        if not waiting.delete()[0]:
            raise ConflictError("This change has taken effect, or was taken back, already.")
        record_act(
            act=Act.POLICY_CHANGED,
            actor=taken_back_by,
            on=policy,
            detail={"team": "" if policy.team is None else policy.team.name, "taken_back": True},
        )


def keep_team_with_rules(instance: Team, **_: object) -> None:
    """Before a team is deleted. Raises PeopleError while it has rules of its own: what it recorded
    would end by others from one night to the next, and nobody would have seen which."""
    now = timezone.now()
    rules = rule_book(now).teams.get(instance.pk, Rules())
    if rules != Rules() or instance.retention_policies.filter(takes_effect_at__gt=now).exists():
        raise PeopleError(
            f"The team {instance} has retention rules of its own. Empty them first, and see there "
            "what that deletes."
        )


# One recording ------------------------------------------------------------------------------------


def set_expiry(*, recording: Recording, expires_at: datetime | None, changed_by: User) -> Recording:
    """A date of its own, on which it moves to the trash; None: as the policy says.

    Raises InvalidInputError for a date that is past or beyond every policy's, NotFoundError if it
    is gone.
    """
    now = timezone.now()
    if expires_at is not None and not now < expires_at <= now + MAX_DAYS * DAY:
        raise InvalidInputError("Choose a day in the future. Nothing was changed.")
    said = "" if expires_at is None else expires_at.isoformat()
    return _say(recording, changed_by, Act.POLICY_CHANGED, {"until": said}, expires_at=expires_at)


def set_team(*, recording: Recording, team: Team | None, changed_by: User) -> Recording:
    """Whose policy counts: that of one of its owner's teams, or the organisation's.

    Raises InvalidInputError for another team, NotFoundError if the recording is gone.
    """
    if team is not None and not team.members.filter(pk=recording.owner_id).exists():
        raise InvalidInputError("Choose one of your own teams. Nothing was changed.")
    said = "" if team is None else team.name
    return _say(recording, changed_by, Act.POLICY_CHANGED, {"team": said}, team=team)


def hold_recording(*, recording: Recording, reason: str, held_by: User) -> Recording:
    """Nobody and no policy deletes it until it is released, nor its audio.

    Raises InvalidInputError without a reason, NotFoundError if it is gone.
    """
    reason = " ".join(reason.split())[:MAX_REASON_CHARACTERS]
    if not reason:
        raise InvalidInputError("Say why it is held: whoever releases it wants to know.")
    return _say(recording, held_by, Act.HELD, {"reason": reason}, is_held=True, held_reason=reason)


def release_recording(*, recording: Recording, released_by: User) -> Recording:
    """Its dates count again. Raises NotFoundError if it is gone."""
    return _say(recording, released_by, Act.RELEASED, {}, is_held=False, held_reason="")


def usual_team_of(owner: User) -> Team | None:
    """Whose policy counts for what `owner` records, until somebody chooses: the only team's."""
    teams = list(owner.teams.all()[:2])
    return teams[0] if len(teams) == 1 else None


def _say(
    recording: Recording, actor: User, act: Act, detail: dict[str, str], **values: object
) -> Recording:
    """Update, unless it was deleted meanwhile, and write down who did it."""
    with transaction.atomic():
        if not Recording.objects.filter(id=recording.id).update(**values):
            raise NotFoundError
        for name, value in values.items():
            setattr(recording, name, value)
        record_act(act=act, actor=actor, on=recording, detail=detail)
    return recording
