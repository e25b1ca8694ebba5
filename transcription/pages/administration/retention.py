"""Retention: the rules, what they will do night by night, what is kept beside them, and reports.

A change is looked at first: its page says in sentences what it would do, and only then it can be
let take effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from transcription import selectors
from transcription.errors import InvalidInputError, NotFoundError
from transcription.models import PurgeRun, RetentionPolicy
from transcription.pages.administration import administrators_only
from transcription.pages.requests import PersonRequest
from transcription.services import purge_plan, retention
from transcription.services.purge_plan import Night
from transcription.services.retention_rules import MAX_DAYS, RuleBook, Rules
from transcription.templatetags.ui import size
from webapp.accounts.models import Team

NIGHTS: Final = 14
"""How far a preview looks."""
SHOWN_RUNS: Final = 10
SHOWN_EXCEPTIONS: Final = 50
_ID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


def _days(label: str, help_text: str) -> forms.IntegerField:
    return forms.IntegerField(
        label=label, help_text=help_text, required=False, min_value=1, max_value=MAX_DAYS
    )


class RulesForm(forms.Form):
    """Days, each of which may be left out."""

    transcript_days = _days(
        "Recordings and their transcripts", "Then they move to the trash of their owner."
    )
    audio_days = _days("Audio of uploads", "Then it is removed, and the transcript stays.")
    live_audio_days = _days("Audio of live sessions", "As for uploads.")
    failed_days = _days(
        "Failed transcriptions", "What left no transcript, and uploads that were refused."
    )
    trash_days = _days(
        "The trash", "Then what is in it is deleted for ever. Until then it can be restored."
    )

    def rules(self) -> Rules:
        """Of a valid form."""
        return Rules(**{name: self.cleaned_data[name] for name in retention.NAMES})


class HoldForm(forms.Form):
    """Which recording, and why."""

    recording = forms.CharField(label="Address of the recording", max_length=500)
    reason = forms.CharField(label="Reason", max_length=retention.MAX_REASON_CHARACTERS)


@dataclass(frozen=True, slots=True)
class Verbs:
    """Of one recording, and of several."""

    lose: tuple[str, str]
    move: tuple[str, str]
    be: tuple[str, str]


_WILL: Final = Verbs(lose=("loses its", "lose their"), move=("moves", "move"), be=("is", "are"))
_DID: Final = Verbs(lose=("lost its", "lost their"), move=("moved", "moved"), be=("was", "were"))


@dataclass(frozen=True, slots=True)
class Whose:
    """The organisation's rules (`team` None), or a team's, in words."""

    team: Team | None
    lines: list[tuple[str, str]]


@administrators_only
@require_safe
def overview(request: PersonRequest) -> HttpResponse:
    """Everything about retention on one page."""
    return _overview(request, HoldForm())


@administrators_only
@require_safe
def change(request: PersonRequest) -> HttpResponse:
    """The form of one's rules, with what is in force, or was about to be asked for."""
    team = _team(request.GET.get("team", ""))
    asked = {name: request.GET[name] for name in retention.NAMES if name in request.GET}
    form = RulesForm(initial=asdict(_own_rules(team)) | asked)
    return render(request, "administration/retention_change.html", {"form": form, "team": team})


@administrators_only
@require_safe
def preview(request: PersonRequest) -> HttpResponse:
    """What a change would do, before it is one."""
    team = _team(request.GET.get("team", ""))
    form = RulesForm(request.GET)
    if not form.is_valid():
        return _refused(request, form, team)
    try:
        proposed = retention.draft_policy(team=team, rules=form.rules())
    except InvalidInputError as error:
        form.add_error(None, error.text)
        return _refused(request, form, team)
    nights = _nights(timezone.now())
    with_it, without = retention.policies_with(proposed), list(RetentionPolicy.objects.all())
    shown = _after(proposed.takes_effect_at, nights, with_it)
    context = {
        "form": form,
        "team": team,
        "lines": lines_of(form.rules(), is_team=team is not None),
        "takes_effect_at": proposed.takes_effect_at,
        "sentences": [sentence_of(night) for night in shown if not night.is_quiet],
        "last": nights[-1],
        "total": in_words(shown),
        "total_without": in_words(_after(proposed.takes_effect_at, nights, without)),
    }
    return render(request, "administration/retention_preview.html", context)


@administrators_only
@require_POST
def confirm(request: PersonRequest) -> HttpResponse:
    """Let the change take effect, at night."""
    team = _team(request.POST.get("team", ""))
    form = RulesForm(request.POST)
    if not form.is_valid():
        return _refused(request, form, team)
    policy = retention.change_policy(team=team, rules=form.rules(), changed_by=request.user)
    when = timezone.localtime(policy.takes_effect_at)
    messages.success(
        request,
        f"The change takes effect on {when:%A, %-d %B at %H:%M}. Until then it can be taken back.",
    )
    return redirect("administration_retention")


@administrators_only
@require_POST
def take_back(request: PersonRequest, policy_id: int) -> HttpResponse:
    policy = RetentionPolicy.objects.select_related("team").filter(pk=policy_id).first()
    if policy is None:
        raise NotFoundError
    retention.take_back_policy(policy=policy, taken_back_by=request.user)
    messages.success(request, "The change is taken back. The rules stay as they are.")
    return redirect("administration_retention")


@administrators_only
@require_POST
def hold(request: PersonRequest) -> HttpResponse:
    """Put a recording on hold, by its address."""
    form = HoldForm(request.POST)
    if not form.is_valid():
        return _overview(request, form, status=400)
    found = _ID.search(form.cleaned_data["recording"])
    try:
        recording = selectors.access_administered_recording_by_id(
            request.user, found[0] if found else UUID(int=0)
        )
    except NotFoundError:
        form.add_error("recording", "There is no such recording. Copy the address of its page.")
        return _overview(request, form, status=400)
    reason = form.cleaned_data["reason"]
    retention.hold_recording(recording=recording, reason=reason, held_by=request.user)
    messages.success(request, f"“{recording.title}” is on hold: nobody can delete it.")
    return redirect("administration_retention")


@administrators_only
@require_POST
def release(request: PersonRequest, recording_id: UUID) -> HttpResponse:
    recording = selectors.access_administered_recording_by_id(request.user, recording_id)
    retention.release_recording(recording=recording, released_by=request.user)
    messages.success(request, f"“{recording.title}” is released: its dates count again.")
    return redirect("administration_retention")


@administrators_only
@require_POST
def forget_date(request: PersonRequest, recording_id: UUID) -> HttpResponse:
    """Let the rules count for a recording that had a day of its own."""
    recording = selectors.access_administered_recording_by_id(request.user, recording_id)
    retention.set_expiry(recording=recording, expires_at=None, changed_by=request.user)
    messages.success(request, f"For “{recording.title}” the rules count again.")
    return redirect("administration_retention")


# Words --------------------------------------------------------------------------------------------


def sentence_of(night: Night) -> str:
    """`On Monday, 7 December: 14 recordings lose their audio (3.2 GB).`"""
    day = timezone.localtime(night.at)
    return f"On {day:%A, %-d %B}: {in_words([night])}."


def in_words(nights: Iterable[Night]) -> str:
    """What all of them do together."""
    words = _in_words(nights, _WILL)
    return words or "nothing ends"


def report_of(run: PurgeRun) -> str:
    """What a purge has done."""
    words = _in_words([_night_of(run)], _DID)
    return words or "nothing has ended"


def _in_words(nights: Iterable[Night], verbs: Verbs) -> str:
    nights = list(nights)

    def total(name: str) -> int:
        return sum(getattr(night, name) for night in nights)

    audio, trashed, deleted, others = map(total, ("audio", "trashed", "deleted", "others"))
    parts = []
    if audio:
        freed = size(total("audio_bytes"))
        parts.append(f"{_recordings(audio)} {verbs.lose[audio > 1]} audio ({freed})")
    if trashed:
        parts.append(f"{_recordings(trashed)} {verbs.move[trashed > 1]} to the trash")
    if deleted:
        freed = size(total("deleted_bytes"))
        parts.append(f"{_recordings(deleted)} {verbs.be[deleted > 1]} deleted for ever ({freed})")
    if others:
        what = (
            "empty sessions or refused uploads" if others > 1 else "empty session or refused upload"
        )
        parts.append(f"{others} {what} {verbs.be[others > 1]} forgotten")
    return ", ".join(parts)


def lines_of(rules: Rules, *, is_team: bool) -> list[tuple[str, str]]:
    """Each rule and its days, as a page shows them."""
    labels = RulesForm.base_fields
    unsaid = "as the organisation" if is_team else "for ever"
    return [
        (str(labels[name].label), _days_in_words(getattr(rules, name), unsaid))
        for name in RulesForm.base_fields
    ]


def _days_in_words(days: int | None, unsaid: str) -> str:
    if days is None:
        return unsaid
    return "1 day" if days == 1 else f"{days} days"


def _recordings(count: int) -> str:
    return "1 recording" if count == 1 else f"{count} recordings"


# Rows ---------------------------------------------------------------------------------------------


def _overview(request: PersonRequest, form: HoldForm, *, status: int = 200) -> HttpResponse:
    now = timezone.now()
    book, nights = retention.rule_book(now), _nights(now)
    policies = list(RetentionPolicy.objects.all())
    shown = purge_plan.preview([(at, retention.book_at(at, policies)) for at in nights])
    recordings = selectors.recordings_administered_by(request.user)
    own_dates = recordings.exclude(expires_at=None).order_by("-expires_at")
    context = {
        "all_rules": _all_rules(book),
        "waiting": [
            (policy, lines_of(retention.rules_of(policy), is_team=policy.team_id is not None))
            for policy in retention.waiting_policies()
        ],
        "teams": Team.objects.exclude(pk__in=book.teams),
        "tonight": shown[0],
        "tonight_in_words": in_words(shown[:1]),
        "sentences": [sentence_of(night) for night in shown[1:] if not night.is_quiet],
        "last": nights[-1],
        "held": list(recordings.filter(is_held=True).order_by("-created_at")),
        "hold_form": form,
        "own_dates": list(own_dates[:SHOWN_EXCEPTIONS]),
        "own_dates_count": own_dates.count(),
        "runs": [(run, report_of(run)) for run in PurgeRun.objects.all()[:SHOWN_RUNS]],
    }
    return render(request, "administration/retention.html", context, status=status)


def _refused(request: PersonRequest, form: RulesForm, team: Team | None) -> HttpResponse:
    context = {"form": form, "team": team}
    return render(request, "administration/retention_change.html", context, status=400)


def _all_rules(book: RuleBook) -> list[Whose]:
    """The organisation's first, then those of teams that have some."""
    teams = Team.objects.filter(pk__in=book.teams)
    return [
        Whose(None, lines_of(book.organisation, is_team=False)),
        *(Whose(team, lines_of(book.teams[team.pk], is_team=True)) for team in teams),
    ]


def _own_rules(team: Team | None) -> Rules:
    """What is in force, or waits for it: a change goes on from there."""
    for policy in reversed(retention.waiting_policies()):
        if policy.team_id == (None if team is None else team.pk):
            return retention.rules_of(policy)
    book = retention.rule_book(timezone.now())
    return book.organisation if team is None else book.teams.get(team.pk, Rules())


def _nights(now: datetime) -> list[datetime]:
    first = retention.next_night(now)
    return [first + number * retention.DAY for number in range(NIGHTS)]


def _after(
    moment: datetime, nights: list[datetime], policies: list[RetentionPolicy]
) -> list[Night]:
    """What the nights from `moment` on will do, after what the ones before have done."""
    shown = purge_plan.preview([(at, retention.book_at(at, policies)) for at in nights])
    return [night for night in shown if night.at >= moment]


def _night_of(run: PurgeRun) -> Night:
    counts: dict[str, Any] = run.counts
    names = ("audio", "audio_bytes", "trashed", "deleted", "deleted_bytes")
    others = counts.get("sessions", 0) + counts.get("uploads", 0)
    return Night(run.started_at, **{name: counts.get(name, 0) for name in names}, others=others)


def _team(value: str) -> Team | None:
    """Raises NotFoundError for one that is not."""
    if not value:
        return None
    team = Team.objects.filter(pk=value).first() if value.isascii() and value.isdigit() else None
    if team is None:
        raise NotFoundError
    return team


urlpatterns = [
    path("retention/", overview, name="administration_retention"),
    path("retention/change/", change, name="administration_retention_change"),
    path("retention/preview/", preview, name="administration_retention_preview"),
    path("retention/confirm/", confirm, name="administration_retention_confirm"),
    path(
        "retention/<int:policy_id>/take-back/",
        take_back,
        name="administration_retention_take_back",
    ),
    path("retention/hold/", hold, name="administration_retention_hold"),
    path(
        "retention/<uuid:recording_id>/release/",
        release,
        name="administration_retention_release",
    ),
    path(
        "retention/<uuid:recording_id>/forget-date/",
        forget_date,
        name="administration_retention_forget_date",
    ),
]
