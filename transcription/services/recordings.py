"""Recordings: their title. How one comes to be: see `uploads` and `live_sessions`; who besides its
owner reads it: see `sharing`; how it ends: see `trash`."""

from __future__ import annotations

from django.db import transaction

from transcription.broadcast import recording_changed_on_commit
from transcription.errors import NotFoundError
from transcription.models import Recording
from transcription.services.names import clean_title
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act, User


def rename_recording(*, recording: Recording, title: str, renamed_by: User) -> Recording:
    """Raises InvalidInputError for a title without a visible sign, NotFoundError if it is gone."""
    recording.title = clean_title(title)
    with transaction.atomic():
        _update(recording, title=recording.title)
        record_act(act=Act.EDITED, actor=renamed_by, on=recording, detail={"what": "title"})
        recording_changed_on_commit(recording.id)
    return recording


def _update(recording: Recording, **fields: object) -> None:
    """Somebody may have deleted it since it was read."""
    if not Recording.objects.filter(id=recording.id).update(**fields):
        raise NotFoundError
