"""How long a recording is kept: what its page says of it, and what its owner may choose."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_POST

from transcription import selectors
from transcription.errors import InvalidInputError
from transcription.models import Recording
from transcription.pages.requests import PersonRequest
from transcription.services import purge_plan, retention
from transcription.services.retention_rules import dates_of
from webapp.accounts.models import Team, User

LAST_OF_A_DAY = time(23, 59, 59)


class KeepForm(forms.Form):
    """A day of the recording's own, or none; whose rules count otherwise."""

    until = forms.DateField(required=False)
    team = forms.IntegerField(required=False)


@dataclass(frozen=True, slots=True)
class Keeping:
    """When the audio goes and when the recording does, as far as anything says so; the `teams`
    whose rules its owner may choose.
    """

    audio_at: datetime | None
    trash_at: datetime | None
    teams: list[Team]


def keeping_of(recording: Recording, user: User) -> Keeping:
    """As the rules of this moment say."""
    now = timezone.now()
    rules = retention.rule_book(now).of(recording.team_id)
    dates = dates_of(purge_plan.facts_of(recording), rules)
    is_owner = recording.owner_id == user.pk
    return Keeping(
        # What is due already goes in the coming night.
        audio_at=dates.audio_at and max(dates.audio_at, now),
        trash_at=dates.trash_at and max(dates.trash_at, now),
        teams=list(user.teams.all()) if is_owner else [],
    )


@login_required
@require_POST
def recording_keep(request: PersonRequest, recording_id: UUID) -> HttpResponse:
    """Save whose rules count, and a day of its own."""
    own = selectors.access_own_recording_by_id(request.user, recording_id)
    form = KeepForm(request.POST)
    if not form.is_valid():
        raise InvalidInputError("This is no day of the calendar. Nothing was changed.")
    team_id, until = form.cleaned_data["team"], form.cleaned_data["until"]
    if team_id != own.team_id and "team" in request.POST:
        team = None if team_id is None else request.user.teams.filter(pk=team_id).first()
        if team_id is not None and team is None:
            raise InvalidInputError("Choose one of your own teams. Nothing was changed.")
        retention.set_team(recording=own, team=team, changed_by=request.user)
    before = own.expires_at and timezone.localtime(own.expires_at).date()
    if until != before:
        moment = until and timezone.make_aware(datetime.combine(until, LAST_OF_A_DAY))
        retention.set_expiry(recording=own, expires_at=moment, changed_by=request.user)
    if until is None:
        messages.success(request, "It is kept as long as the rules say.")
    else:
        messages.success(request, f"It is kept until {until:%-d %B %Y}, with its audio.")
    return redirect("recording", own.id)


urlpatterns = [
    path("recordings/<uuid:recording_id>/keep/", recording_keep, name="recording_keep"),
]
