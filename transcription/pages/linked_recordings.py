"""One recording, for whoever has a link to it: `/r/<token>/`. To read, to hear and to download.

The audio and the downloads come from `transcription.api.linked_recordings`, at addresses relative
to this page, so that the token stands in no page.
"""

from __future__ import annotations

import structlog
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path

from transcription.models import RecordingState, ShareLink
from transcription.pages.behind_links import behind_link
from transcription.pages.paragraphs import paragraphs_of
from transcription.pages.recordings import segments_of, tail_of
from transcription.services import speakers, transcripts
from transcription.services.share_links import open_recording_link
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act

log = structlog.get_logger(__name__)


@behind_link(open_recording_link, closed="This recording is closed")
def linked_recording(request: HttpRequest, link: ShareLink) -> HttpResponse:
    shown = link.linked_recording
    log.info("share_link_opened", leads_to=str(shown.id))
    record_act(act=Act.VIEWED, actor=None, on=shown, detail={"by": "link"})
    revision, names = transcripts.current_revision(shown), speakers.names_of(shown)
    context = {
        "recording": shown,
        "revision": revision,
        "paragraphs": paragraphs_of(segments_of(revision), names),
        "tail": tail_of(revision, names),
        "is_waiting": shown.state == RecordingState.QUEUED,
        "is_growing": shown.state == RecordingState.TRANSCRIBING,
        "until": link.expires_at,
        "has_audio": shown.audio_removed_at is None,
    }
    return render(request, "recording/linked.html", context)


urlpatterns = [path("r/<slug:token>/", linked_recording, name="linked_recording")]
