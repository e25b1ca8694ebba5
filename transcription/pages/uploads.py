"""How an upload stands, for the list on the home page. The bytes go to `transcription.api`."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_GET

from transcription import selectors
from transcription.pages.requests import PersonRequest


@login_required
@require_GET
def upload_status(request: PersonRequest, upload_id: UUID) -> JsonResponse:
    """`state` is an UploadState, `problem` a sentence, `recording` an address once there is one."""
    upload = selectors.access_upload_by_id(request.user, upload_id)
    return JsonResponse(
        {
            "state": upload.state,
            "offset_bytes": upload.offset_bytes,
            "problem": upload.problem,
            "recording": reverse("recording", args=[upload.recording_id])
            if upload.recording_id
            else "",
        }
    )
