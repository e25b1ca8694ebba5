"""A short recording that a newcomer can try, sent down the road of every upload."""

from __future__ import annotations

from django.conf import settings

from transcription.models import Upload
from transcription.services import uploads
from transcription.services.job_options import JobOptions
from webapp.accounts.models import User

SAMPLE_NAME = "Sample: a reading in English.ogg"


def add_sample(person: User) -> Upload:
    """Make an upload of `static/audio/sample.ogg` (LibriSpeech, CC BY 4.0) for `person`."""
    path = settings.BASE_DIR / "static" / "audio" / "sample.ogg"
    content = path.read_bytes()
    upload = uploads.create_upload(
        owner=person,
        display_name=SAMPLE_NAME,
        length_bytes=len(content),
        options=JobOptions(language="en"),
    )
    return uploads.append_upload(upload=upload, offset_bytes=0, chunks=[content])
