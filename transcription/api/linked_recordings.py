"""The audio, its waveform and the downloads of one recording, for whoever has a link to it.

They lie beside the page of the link (`/r/<token>/`); a refusal is problem JSON.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.urls import path
from django.views.decorators.http import require_safe

from transcription.api.allowances import count_request, tell_allowance
from transcription.api.exports import export_of
from transcription.api.media import PEAKS_NAME, send_file
from transcription.api.problems import problem_of
from transcription.errors import NotFoundError, ProductError
from transcription.formats import FORMATS
from transcription.models import Recording
from transcription.services import rate_limits
from transcription.services.share_links import open_recording_link
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act

View = Callable[..., HttpResponseBase]


def behind_link(view: View) -> View:
    """A view of the recording that the token in the address leads to."""

    @functools.wraps(view)
    @require_safe
    def guarded(request: HttpRequest, token: str, **arguments: Any) -> HttpResponseBase:
        response: HttpResponseBase
        address = request.META.get("REMOTE_ADDR", "")
        try:
            count_request(request, rate_limits.address(address), rate_limits.Kind.LINKED_FILE)
            link = open_recording_link(token=token, address=address)
            response = view(request, link.linked_recording, **arguments)
        except ProductError as error:
            response = problem_of(error)
        tell_allowance(request, response)
        response["Referrer-Policy"] = "no-referrer"
        response["X-Robots-Tag"] = "noindex, nofollow"
        return response

    return guarded


@behind_link
def linked_media(request: HttpRequest, recording: Recording) -> HttpResponseBase:
    if request.method == "GET":
        record_act(act=Act.PLAYED, actor=None, on=recording, detail={"by": "link"})
    return send_file(request, recording.player_path, recording.media_type)


@behind_link
def linked_peaks(request: HttpRequest, recording: Recording) -> HttpResponseBase:
    return send_file(request, recording.folder / PEAKS_NAME, "application/json")


@behind_link
def linked_export(request: HttpRequest, recording: Recording, extension: str) -> HttpResponseBase:
    if extension not in FORMATS:
        raise NotFoundError
    if request.method == "GET":
        detail = {"by": "link", "format": extension}
        record_act(act=Act.EXPORTED, actor=None, on=recording, detail=detail)
    return export_of(recording, extension)


urlpatterns = [
    path("r/<slug:token>/media", linked_media, name="linked_media"),
    path("r/<slug:token>/peaks.json", linked_peaks, name="linked_peaks"),
    path("r/<slug:token>/export.<str:extension>", linked_export, name="linked_export"),
]
