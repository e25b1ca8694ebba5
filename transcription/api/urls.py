"""Addresses of the REST API, and of what pages load from it."""

from __future__ import annotations

from django.urls import include, path, re_path

from transcription.api import captions, exports, linked_recordings, media, uploads
from transcription.api.border import nothing_here
from transcription.api.v1 import api
from transcription.services.caption_text import MEDIA_TYPES

urlpatterns = [
    *(
        path(
            f"live/<uuid:session_id>/captions.{extension}",
            captions.live_caption_text,
            {"extension": extension},
            name=f"live_captions_{extension}",
        )
        for extension in MEDIA_TYPES
    ),
    *(
        path(
            f"s/<slug:token>/captions.{extension}",
            captions.linked_caption_text,
            {"extension": extension},
            name=f"linked_captions_{extension}",
        )
        for extension in MEDIA_TYPES
    ),
    path("api/v1/uploads/", uploads.upload_collection, name="api_uploads"),
    path("api/v1/uploads/<uuid:upload_id>", uploads.upload_resource, name="api_upload"),
    path("api/v1/", api.urls),
    re_path(r"^api/v1/", nothing_here),
    path("", include("transcription.api.openai.urls")),
    *linked_recordings.urlpatterns,
    path("recordings/<uuid:recording_id>/media", media.recording_media, name="recording_media"),
    path(
        "recordings/<uuid:recording_id>/export.<str:extension>",
        exports.recording_export,
        name="recording_export",
    ),
    path(
        "recordings/<uuid:recording_id>/versions/<int:number>/export.<str:extension>",
        exports.recording_version_export,
        name="recording_version_export",
    ),
    path(
        "recordings/<uuid:recording_id>/peaks.json", media.recording_peaks, name="recording_peaks"
    ),
]
