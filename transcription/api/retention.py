"""REST v1, for administrators: retention policies, their preview, purges and holds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final
from uuid import UUID

from django.http import HttpResponse
from django.utils import timezone
from ninja import Query, Router

from transcription import selectors
from transcription.api.access import ADMINISTERS, ApiRequest
from transcription.api.answers import tagged
from transcription.api.cursors import Page, Paging, newest_first
from transcription.api.repetition import once_by_key
from transcription.api.resources.retention import (
    HoldIn,
    HoldOut,
    NightOut,
    PolicyIn,
    PolicyOut,
    PreviewOut,
    PurgeRunOut,
    RetentionOut,
    RulesOut,
    TeamRules,
)
from transcription.api.words import check_key
from transcription.errors import InvalidInputError, NotFoundError
from transcription.models import PurgeRun, Recording, RetentionPolicy
from transcription.services import purge_plan, retention
from webapp.accounts.models import Team

NIGHTS: Final = 14
"""How far a preview looks."""

router = Router()


@router.get("", auth=ADMINISTERS, response={200: RetentionOut, 304: None})
def read_retention(request: ApiRequest) -> HttpResponse:
    """The rules in force, and those that wait."""
    book = retention.rule_book(timezone.now())
    answer = RetentionOut(
        organisation=RulesOut(**asdict(book.organisation)),
        teams=[TeamRules(team=team, **asdict(rules)) for team, rules in book.teams.items()],
        waiting=[PolicyOut.of(policy) for policy in retention.waiting_policies()],
    )
    return tagged(request, answer)


@router.post("/preview", auth=ADMINISTERS, response=PreviewOut)
def preview_retention(request: ApiRequest, asked: PolicyIn) -> PreviewOut:
    """What new rules would do in the coming fortnight, to what is here today."""
    proposed = retention.draft_policy(team=_team(asked.team), rules=asked.read())
    policies = retention.policies_with(proposed)
    first = retention.next_night(timezone.now())
    nights = [first + number * retention.DAY for number in range(NIGHTS)]
    shown = purge_plan.preview([(at, retention.book_at(at, policies)) for at in nights])
    return PreviewOut(
        takes_effect_at=proposed.takes_effect_at,
        nights=[NightOut.of(night) for night in shown if night.at >= proposed.takes_effect_at],
    )


@router.post("", auth=ADMINISTERS, response={201: PolicyOut})
@once_by_key()
def change_retention(request: ApiRequest, asked: PolicyIn) -> HttpResponse:
    """Let new rules take effect tomorrow night, in the place of those that wait."""
    policy = retention.change_policy(
        team=_team(asked.team), rules=asked.read(), changed_by=request.auth
    )
    return tagged(request, PolicyOut.of(policy), status=201)


@router.get("/runs", auth=ADMINISTERS, response=Page[PurgeRunOut])
def list_purge_runs(request: ApiRequest, paging: Query[Paging]) -> Page[PurgeRunOut]:
    """What each purge did, the latest first."""
    rows, next_cursor = newest_first(PurgeRun.objects.all(), paging, by="started_at")
    return Page(items=[PurgeRunOut.of(row) for row in rows], next_cursor=next_cursor)


@router.delete("/{policy_id}", auth=ADMINISTERS, response={204: None})
def take_back_retention(request: ApiRequest, policy_id: int) -> HttpResponse:
    """Take new rules back before they take effect."""
    policy = RetentionPolicy.objects.select_related("team").filter(pk=check_key(policy_id)).first()
    if policy is None:
        raise NotFoundError
    retention.take_back_policy(policy=policy, taken_back_by=request.auth)
    return HttpResponse(status=204)


@router.put("/holds/{recording_id}", auth=ADMINISTERS, response=HoldOut)
def hold_recording(request: ApiRequest, recording_id: UUID, asked: HoldIn) -> HttpResponse:
    """Put a recording on hold: nothing deletes it, nor its audio, until it is released."""
    recording = selectors.access_administered_recording_by_id(request.auth, recording_id)
    retention.hold_recording(recording=recording, reason=asked.reason, held_by=request.auth)
    return tagged(request, _hold_of(recording))


@router.delete("/holds/{recording_id}", auth=ADMINISTERS, response={204: None})
def release_recording(request: ApiRequest, recording_id: UUID) -> HttpResponse:
    """Let its dates count again."""
    recording = selectors.access_administered_recording_by_id(request.auth, recording_id)
    retention.release_recording(recording=recording, released_by=request.auth)
    return HttpResponse(status=204)


def _hold_of(recording: Recording) -> HoldOut:
    return HoldOut(is_held=recording.is_held, reason=recording.held_reason)


def _team(team_id: int | None) -> Team | None:
    if team_id is None:
        return None
    team = Team.objects.filter(pk=check_key(team_id)).first()
    if team is None:
        raise InvalidInputError("There is no such team. Nothing was changed.")
    return team
