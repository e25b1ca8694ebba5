"""The title of a recording."""

from __future__ import annotations

import pytest

from tests.fakes.recordings import make_recording
from transcription.errors import InvalidInputError, NotFoundError
from transcription.models import Recording
from transcription.services import recordings, trash
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
    trash.delete_for_ever(recording=Recording.objects.get(), deleted_by=alice)
    with pytest.raises(NotFoundError):
        recordings.rename_recording(recording=recording, title="Late", renamed_by=alice)
