"""Title and end of a recording."""

from __future__ import annotations

import pytest

from tests.fakes.recordings import make_job, make_recording, make_upload
from transcription.errors import InvalidInputError, NotFoundError
from transcription.models import Recording, Upload, UploadState
from transcription.services import recordings
from webapp.accounts.models import User


def test_title_is_cleaned_and_needs_a_visible_sign(alice: User) -> None:
    recording = recordings.rename_recording(
        recording=make_recording(alice), title=" Q3 \n plan ", renamed_by=alice
    )
    recording.refresh_from_db()
    assert recording.title == "Q3 plan"
    with pytest.raises(InvalidInputError):
        recordings.rename_recording(recording=recording, title="\u202e", renamed_by=alice)


def test_what_was_deleted_meanwhile_is_not_found(alice: User) -> None:
    recording = make_recording(alice)
    recordings.delete_recording(recording=Recording.objects.get())
    with pytest.raises(NotFoundError):
        recordings.rename_recording(recording=recording, title="Late", renamed_by=alice)


def test_deleting_takes_the_upload_and_the_bytes_with_it(alice: User) -> None:
    upload = make_upload(alice)
    recording = make_job(alice).recording
    Upload.objects.filter(id=upload.id).update(state=UploadState.ACCEPTED, recording=recording)
    recordings.delete_recording(recording=recording)
    assert not recording.folder.exists()
    assert not Recording.objects.exists()
    assert not Upload.objects.exists()
    recordings.delete_recording(recording=recording)
