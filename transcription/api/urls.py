"""Addresses of the REST API, and of what pages load from it."""

from __future__ import annotations

from django.urls import path

from transcription.api import exports, media, uploads

urlpatterns = [
    path("api/v1/uploads/", uploads.upload_collection, name="api_uploads"),
    path("api/v1/uploads/<uuid:upload_id>", uploads.upload_resource, name="api_upload"),
    path("recordings/<uuid:recording_id>/media", media.recording_media, name="recording_media"),
    path(
        "recordings/<uuid:recording_id>/export.<str:extension>",
        exports.recording_export,
        name="recording_export",
    ),
    path(
        "recordings/<uuid:recording_id>/peaks.json", media.recording_peaks, name="recording_peaks"
    ),
]
