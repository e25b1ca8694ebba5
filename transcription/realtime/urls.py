"""Addresses of the WebSockets."""

from __future__ import annotations

from typing import Any

from django.urls import path

from transcription.realtime.captions import CaptionsSocket
from transcription.realtime.capture import CaptureSocket
from transcription.realtime.recordings import RecordingSocket
from transcription.realtime.stream import StreamSocket
from transcription.realtime.two_channels import by_channels

websocket_urlpatterns: list[Any] = [
    path("ws/v1/live/<uuid:session_id>/capture", CaptureSocket.as_asgi()),
    path("ws/v1/live/<uuid:session_id>/captions", CaptionsSocket.as_asgi()),
    path("ws/v1/stream", by_channels(StreamSocket.as_asgi())),
    path("ws/v1/recordings/<uuid:recording_id>", RecordingSocket.as_asgi()),
]
