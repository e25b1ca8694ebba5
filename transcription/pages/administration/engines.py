"""Engines and models: what runs where, how full it is, and whether it is well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.http import require_POST, require_safe

from asr_engine.protocol import EngineStatus
from transcription import selectors
from transcription.errors import InvalidInputError
from transcription.languages import language_name
from transcription.models import Job, JobState, LiveSession, LiveState
from transcription.pages.administration import administrators_only
from transcription.pages.requests import PersonRequest
from transcription.services import machine
from webapp.beats import SCHEDULE

SHOWN_LANGUAGES: Final = 6
SHOWN_SESSIONS: Final = 100
ORDERED: Final = "engines_ordered"
"""In the session: what was ordered, until the page is shown."""
NO_ORDERS: Final[Mapping[str, str]] = {}
LATE_MS: Final = 1000
"""Lag from which a new stream is refused."""
WORK: Final = {"batch": "Transcription", "chores": "Chores", SCHEDULE: "The clock of the chores"}


@dataclass(frozen=True, slots=True)
class EngineLine:
    """An engine in words. `tone` is that of its badge."""

    status: EngineStatus
    state: str
    tone: str

    @classmethod
    def of(cls, status: EngineStatus, order: str = "") -> EngineLine:
        """`order` was given a moment ago, and its state may not tell of it yet."""
        if order == "drain" and not status.is_draining:
            return cls(status, "Draining …", "warning")
        if order == "serve" and status.is_draining:
            return cls(status, "Beginning to serve …", "accent")
        if status.is_draining:
            words = "Draining" if status.sessions else "Empty: it may be stopped"
            return cls(status, words, "warning")
        if status.lag_ms >= LATE_MS:
            return cls(status, "Late", "danger")
        if not status.free_slots:
            return cls(status, "Full", "warning")
        return cls(status, "Serving", "accent")

    @property
    def taken(self) -> int:
        return self.status.slots - self.status.free_slots

    @property
    def languages(self) -> str:
        names = [language_name(code) for code in self.status.languages]
        if not names:
            return "Any language"
        more = len(names) - SHOWN_LANGUAGES
        return ", ".join(names[:SHOWN_LANGUAGES]) + (f" and {more} more" if more > 0 else "")

    @property
    def modes(self) -> str:
        return ", ".join(f"{mode_ms} ms" for mode_ms in self.status.modes_ms)


@dataclass(frozen=True, slots=True)
class SessionLine:
    """A session that runs, and the engine that hears it."""

    session: LiveSession
    engine: str


@dataclass(frozen=True, slots=True)
class ProcessLine:
    """Another process that has signs of life."""

    name: str
    work: str
    is_silent: bool


@administrators_only
@require_safe
def engines(request: PersonRequest) -> HttpResponse:
    """Everything; a request by the page itself gets the part that changes."""
    if request.headers.get("HX-Request") == "true":
        return render(request, "administration/engines_now.html", _now(request))
    context = _now(request, request.session.pop(ORDERED, {})) | {
        "models": machine.models_of_store()
    }
    return render(request, "administration/engines.html", context)


@administrators_only
@require_POST
def order(request: PersonRequest, name: str) -> HttpResponse:
    """`order` is `drain` or `serve`."""
    asked = request.POST.get("order")
    if asked not in {"drain", "serve"}:
        raise InvalidInputError
    is_draining = asked == "drain"
    machine.order_engine(name=name, is_draining=is_draining, ordered_by=request.user)
    what = (
        "hands over its sessions and takes no more" if is_draining else "takes live sessions again"
    )
    messages.success(request, f"{name} {what}. It obeys within a second or two.")
    request.session[ORDERED] = {name: asked}
    return redirect("administration_engines")


def _now(request: PersonRequest, ordered: Mapping[str, str] = NO_ORDERS) -> dict[str, object]:
    parts = machine.look_at_parts()
    running = selectors.live_sessions_administered_by(request.user).filter(
        state__in=(LiveState.LIVE, LiveState.WAITING, LiveState.ENDING)
    )
    shown = list(running.order_by("-created_at")[:SHOWN_SESSIONS])
    heard_by = machine.engines_of(shown) if shown and parts.has_broker else {}
    jobs = Job.objects.order_by()
    return {
        "parts": parts,
        "engines": [
            EngineLine.of(status, ordered.get(status.engine, "")) for status in parts.engines
        ],
        "sessions": [SessionLine(s, heard_by.get(str(s.id), "")) for s in shown],
        "processes": _processes(parts),
        "waiting": jobs.filter(state=JobState.QUEUED).count(),
        "running": jobs.filter(state=JobState.RUNNING).count(),
    }


def _processes(parts: machine.Parts) -> list[ProcessLine]:
    lines = [
        ProcessLine(worker.name.partition("/")[0], WORK.get(worker.queue, ""), worker.is_silent)
        for worker in parts.workers
    ]
    lines += [ProcessLine(web.name, "Pages and sockets", web.is_silent) for web in parts.webs]
    if parts.has_broker:
        lines.append(ProcessLine("recorder", "Live audio and captions", not parts.has_recorder))
    return lines


urlpatterns = [
    path("engines/", engines, name="administration_engines"),
    path("engines/<str:name>/", order, name="administration_engines_order"),
]
