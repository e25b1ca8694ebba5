"""The front page of the administration: what needs attention first, then how much there is."""

from __future__ import annotations

from django.db.models import Count, Q, Sum
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from transcription import selectors
from transcription.models import Job, JobState, LiveState
from transcription.pages.administration import administrators_only
from transcription.pages.administration.attention import what_needs_attention
from transcription.pages.requests import PersonRequest
from transcription.services import machine
from webapp.accounts.models import Role, User


@administrators_only
@require_safe
def overview(request: PersonRequest) -> HttpResponse:
    recordings = selectors.recordings_administered_by(request.user).order_by()
    sessions = selectors.live_sessions_administered_by(request.user)
    context = {
        "attention": what_needs_attention(),
        "disk": machine.look_at_disk(),
        "people": User.objects.exclude(role=Role.SERVICE).aggregate(
            active=Count("pk", filter=Q(is_active=True)),
            disabled=Count("pk", filter=Q(is_active=False)),
        ),
        "recordings": recordings.filter(trashed_at=None).aggregate(
            count=Count("pk"), duration_ms=Sum("duration_ms", default=0)
        ),
        "live": sessions.filter(state__in=(LiveState.LIVE, LiveState.WAITING)).count(),
        "jobs": Job.objects.order_by().aggregate(
            running=Count("pk", filter=Q(state=JobState.RUNNING)),
            waiting=Count("pk", filter=Q(state=JobState.QUEUED)),
        ),
    }
    is_fragment = request.headers.get("HX-Request") == "true"
    name = "overview_now" if is_fragment else "overview"
    return render(request, f"administration/{name}.html", context)


urlpatterns = [path("", overview, name="administration")]
