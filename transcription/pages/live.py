"""Live captions: starting a session, its capture page, its captions page, its end.

The audio and the captions themselves travel by sockets (`transcription.realtime`).
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import redis
import segno
from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from asr_engine.audio import SAMPLE_RATE
from asr_engine.client import engine_statuses_sync
from asr_engine.protocol import EngineStatus
from transcription import latency_modes, selectors
from transcription.errors import NotFoundError, TooManySessionsError
from transcription.languages import LANGUAGES, Choice, Group, language_choices
from transcription.models import LiveSession, LiveState, Visibility
from transcription.pages.audience import audience_context
from transcription.pages.requests import PersonRequest
from transcription.services import live_sessions
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act

OVER = frozenset({LiveState.ENDING, LiveState.ENDED})
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(frozen=True, slots=True)
class Offer:
    """What the running engines can do together. `languages` None means any."""

    is_running: bool
    languages: frozenset[str] | None
    can_detect_language: bool
    modes_ms: tuple[int, ...]
    default_mode_ms: int

    @property
    def language_choices(self) -> list[Choice | Group]:
        """Detection among them only where an engine detects."""
        choices = language_choices(self.languages)
        return choices if self.can_detect_language else choices[1:]

    @property
    def mode_choices(self) -> list[tuple[int, str]]:
        """Empty where there is no choice."""
        return latency_modes.mode_choices(self.modes_ms)

    @classmethod
    def of(cls, statuses: Sequence[EngineStatus]) -> Offer:
        open_to_new = [status for status in statuses if not status.is_draining]
        if not open_to_new:
            return cls(False, None, True, (), 0)
        takes_any = any(not status.languages for status in open_to_new)
        named = frozenset(code for status in open_to_new for code in status.languages)
        return cls(
            is_running=True,
            languages=None if takes_any else named,
            can_detect_language=any(status.can_detect_language for status in open_to_new),
            modes_ms=tuple(sorted({mode for status in open_to_new for mode in status.modes_ms})),
            default_mode_ms=open_to_new[0].default_mode_ms,
        )


def current_offer() -> Offer:
    """Asks the broker; an unreachable one offers nothing."""
    try:
        with redis.Redis.from_url(settings.SITE.broker_url, socket_timeout=2) as broker:
            return Offer.of(engine_statuses_sync(broker))
    except redis.RedisError:
        return Offer.of(())


class LiveSessionForm(forms.Form):
    """What a person says before they speak. Only what the `offer` holds can be chosen."""

    title = forms.CharField(
        max_length=live_sessions.MAX_TITLE_CHARACTERS,
        required=False,
        widget=forms.TextInput(attrs={"placeholder": "Weekly meeting", "autocomplete": "off"}),
    )
    visibility = forms.ChoiceField(
        label="Who may read",
        choices=Visibility.choices,
        initial=Visibility.ORGANISATION,
        widget=forms.RadioSelect,
    )
    field_order = ("title", "language", "mode_ms", "visibility")

    def __init__(self, *args: Any, offer: Offer, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["language"] = forms.ChoiceField(
            label="Spoken language",
            choices=offer.language_choices,
            required=not offer.can_detect_language,
        )
        if modes := offer.mode_choices:
            self.fields["mode_ms"] = forms.TypedChoiceField(
                label="Speed against accuracy",
                choices=modes,
                coerce=int,
                required=False,  # a page that was opened before the engine came has no such choice
                empty_value=None,
                initial=offer.default_mode_ms,
                help_text=f"{latency_modes.HELP} You can change it while captions run.",
            )
        self.order_fields(self.field_order)


def language_select(offer: Offer) -> SafeString:
    """The choice of the language while captions run; the script fills in what is in force."""
    attributes = {
        "id": "language-now",
        "class": "select",
        "aria-describedby": "language-help",
        "disabled": True,
    }
    return forms.Select(attributes, offer.language_choices).render("language_now", None)


def _capture_context(offer: Offer) -> dict[str, object]:
    return {
        "offer": offer,
        "latency_help": latency_modes.HELP,
        "language_select": language_select(offer),
    }


def likely_language(request: PersonRequest, offer: Offer) -> str:
    """The language chosen last, else the browser's, if it is on offer."""
    header = request.headers.get("Accept-Language", "")
    browsers = [item.split(";")[0].split("-")[0].strip().lower() for item in header.split(",")]
    for code in (request.user.speech_language, *browsers):
        if code in LANGUAGES and (offer.languages is None or code in offer.languages):
            return code
    return ""


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def live_new(request: PersonRequest) -> HttpResponse:
    """The capture page before there is a session.

    Its script posts the form and stays, since the microphone is open already; without script the
    answer leads to the session's capture page.
    """
    offer = current_offer()
    initial = {"language": likely_language(request, offer)}
    form = LiveSessionForm(request.POST or None, offer=offer, initial=initial)
    wants_json = request.accepts("application/json") and not request.accepts("text/html")
    if request.method == "POST" and form.is_valid():
        try:
            session = live_sessions.create_live_session(
                owner=request.user,
                title=form.cleaned_data["title"],
                language=form.cleaned_data["language"],
                mode_ms=form.cleaned_data.get("mode_ms") or 0,
                visibility=Visibility(form.cleaned_data["visibility"]),
            )
        except TooManySessionsError as error:
            form.add_error(None, error.text)
        else:
            if wants_json:
                return JsonResponse(_addresses(request, session), status=201)
            return redirect("live_capture", session.id)
    if wants_json:
        problems = [error for errors in form.errors.values() for error in errors]
        return JsonResponse({"problems": problems}, status=400)
    context = {"form": form, "live": None, **_capture_context(offer)}
    return render(request, "live/capture.html", context, status=400 if form.errors else 200)


@login_required
@never_cache
@require_GET
def live_capture(request: PersonRequest, session_id: UUID) -> HttpResponse:
    """The owner's page: the microphone, the state, the captions as others see them."""
    session = selectors.access_own_live_session_by_id(request.user, session_id)
    if session.state in OVER:
        return redirect(_recording_address(session) or reverse("live_captions", args=[session.id]))
    context = {
        "session": session,
        "live": _addresses(request, session),
        **_capture_context(current_offer()),
    }
    return render(request, "live/capture.html", context)


@login_required
@never_cache
@require_GET
def live_captions(request: PersonRequest, session_id: UUID) -> HttpResponse:
    """What any permitted viewer reads, while it runs and after."""
    try:
        session = selectors.access_live_session_by_id(request.user, session_id)
    except NotFoundError:
        # As for a recording: an administrator may say why they need it.
        selectors.access_administered_live_session_by_id(request.user, session_id)
        return redirect("live_open", session_id)
    record_act(act=Act.VIEWED, actor=request.user, on=session)
    is_owner = session.owner_id == request.user.pk
    context = {
        "session": session,
        "reading": reading_addresses(session),
        "is_owner": is_owner,
        **audience_context(request.user, session),
        "can_capture": is_owner and session.state not in OVER,
    }
    return render(request, "live/captions.html", context)


@login_required
@never_cache
@require_GET
def live_room(request: PersonRequest, session_id: UUID) -> HttpResponse:
    """The same for the screen of a room: few lines, readable from the back."""
    session = selectors.access_live_session_by_id(request.user, session_id)
    record_act(act=Act.VIEWED, actor=request.user, on=session)
    return render(request, "live/room.html", room_context(request, session))


@login_required
@never_cache
@require_GET
def live_status(request: PersonRequest, session_id: UUID) -> JsonResponse:
    """State, clock as [position ms, epoch ms] pairs, and the address of the recording, if any."""
    session = selectors.access_live_session_by_id(request.user, session_id)
    return JsonResponse(status_of(session, recording=_recording_address(session)))


@login_required
@require_GET
def live_code(request: PersonRequest, session_id: UUID) -> HttpResponse:
    """The captions' address as a QR code, to point a telephone at."""
    session = selectors.access_live_session_by_id(request.user, session_id)
    picture = io.BytesIO()
    segno.make(_share_address(request, session), micro=False, error="m").save(
        picture, kind="svg", border=2, dark="#1a1f23", light="#ffffff", omitsize=True, xmldecl=False
    )
    return HttpResponse(picture.getvalue(), content_type="image/svg+xml")


@login_required
@require_POST
def live_end(request: PersonRequest, session_id: UUID) -> HttpResponse:
    """End a session without its microphone: from another device, or after a crash."""
    session = selectors.access_own_live_session_by_id(request.user, session_id)
    live_sessions.end_live_session(session=session)
    return redirect("live_captions", session.id)


def status_of(session: LiveSession, *, recording: str | None) -> dict[str, object]:
    """What the socket does not say: the clock, and where the recording is."""
    return {
        "state": session.state,
        "clock": [[sample * 1000 // SAMPLE_RATE, wall_ms] for sample, wall_ms in session.clock],
        "recording": recording,
    }


def room_context(
    request: HttpRequest, session: LiveSession, *, by_link: bool = False
) -> dict[str, object]:
    """`?transparent=1` is for OBS: nothing but the lines, on no ground."""
    return {
        "session": session,
        "reading": reading_addresses(session, by_link=by_link),
        "is_transparent": request.GET.get("transparent") == "1",
    }


def reading_addresses(session: LiveSession, *, by_link: bool = False) -> dict[str, str]:
    """What the scripts of a reader's page need. A link's token stands in the page's own address
    alone: the status is relative to it, and the script shows the token to the socket."""
    socket = f"/ws/v1/live/{session.id}/captions"
    if by_link:
        return {"socket": f"{socket}?by=link", "status": "status/", "room": "room/"}
    return {
        "socket": socket,
        "status": reverse("live_status", args=[session.id]),
        "room": reverse("live_room", args=[session.id]),
    }


def _share_address(request: PersonRequest, session: LiveSession) -> str:
    return request.build_absolute_uri(reverse("live_captions", args=[session.id]))


def _recording_address(session: LiveSession) -> str | None:
    return reverse("recording", args=[session.recording_id]) if session.recording_id else None


def _addresses(request: PersonRequest, session: LiveSession) -> dict[str, object]:
    """What the script of the capture page needs to know of a session."""
    return {
        "session": str(session.id),
        "title": session.title,
        "language": session.language,
        "state": session.state,
        "capture_page": reverse("live_capture", args=[session.id]),
        "captions_page": reverse("live_captions", args=[session.id]),
        "share_address": _share_address(request, session),
        "is_loopback": request.get_host().rsplit(":", 1)[0] in LOOPBACK_NAMES,
        "code": reverse("live_code", args=[session.id]),
        "status": reverse("live_status", args=[session.id]),
        "capture_socket": f"/ws/v1/live/{session.id}/capture",
        "captions_socket": f"/ws/v1/live/{session.id}/captions?as=speaker",
        "links_page": reverse("live_share", args=[session.id]),
    }


urlpatterns = [
    path("live/new/", live_new, name="live_new"),
    path("live/<uuid:session_id>/", live_captions, name="live_captions"),
    path("live/<uuid:session_id>/room/", live_room, name="live_room"),
    path("live/<uuid:session_id>/capture/", live_capture, name="live_capture"),
    path("live/<uuid:session_id>/status/", live_status, name="live_status"),
    path("live/<uuid:session_id>/code.svg", live_code, name="live_code"),
    path("live/<uuid:session_id>/end/", live_end, name="live_end"),
]
