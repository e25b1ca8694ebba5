"""Addresses of the pages."""

from __future__ import annotations

from django.urls import include, path
from django.views.generic import RedirectView

from transcription.pages import (
    glossary,
    home,
    keeping,
    linked_captions,
    linked_recordings,
    live,
    profile,
    recordings,
    sharing,
    speakers,
    tokens,
    tracks,
    trash,
    uploads,
    versions,
    webhooks,
)

urlpatterns = [
    *live.urlpatterns,
    *sharing.urlpatterns,
    *linked_captions.urlpatterns,
    *linked_recordings.urlpatterns,
    *tracks.urlpatterns,
    *versions.urlpatterns,
    *trash.urlpatterns,
    *keeping.urlpatterns,
    *speakers.urlpatterns,
    *glossary.urlpatterns,
    *webhooks.urlpatterns,
    *tokens.urlpatterns,
    path("administration/", include("transcription.pages.administration.urls")),
    path("", home.home, name="home"),
    path("sample/", home.try_sample, name="try_sample"),
    path("profile/", profile.profile, name="profile"),
    path("profile/sessions/<int:session_id>/end/", profile.end_session, name="profile_session_end"),
    path("profile/sessions/end/", profile.end_other_sessions, name="profile_sessions_end"),
    path("profile/language/", profile.speech_language, name="speech_language"),
    path("uploads/<uuid:upload_id>/status/", uploads.upload_status, name="upload_status"),
    # Who shortens the address of a recording means the list.
    path("recordings/", RedirectView.as_view(pattern_name="home")),
    path("recordings/<uuid:recording_id>/", recordings.recording, name="recording"),
    path(
        "recordings/<uuid:recording_id>/status/",
        recordings.recording_status,
        name="recording_status",
    ),
    path(
        "recordings/<uuid:recording_id>/transcript/",
        recordings.recording_transcript,
        name="recording_transcript",
    ),
    path(
        "recordings/<uuid:recording_id>/rename/",
        recordings.recording_rename,
        name="recording_rename",
    ),
    path(
        "recordings/<uuid:recording_id>/cancel/",
        recordings.recording_cancel,
        name="recording_cancel",
    ),
    path(
        "recordings/<uuid:recording_id>/retry/", recordings.recording_retry, name="recording_retry"
    ),
]
