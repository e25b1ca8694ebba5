"""How an upload stands."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from tests.fakes.pages import make_recording
from transcription.models import Upload, UploadState
from webapp.accounts.models import User

ClientOf = Callable[[User | None], Client]


@pytest.fixture
def upload(alice: User) -> Upload:
    return Upload.objects.create(owner=alice, display_name="talk.mp3", length_bytes=10)


def test_owner_learns_of_a_refusal(alice: User, upload: Upload, client_of: ClientOf) -> None:
    upload.state, upload.problem = UploadState.REFUSED, "This is not audio."
    upload.save()
    answer = client_of(alice).get(f"/uploads/{upload.id}/status/").json()
    assert answer["state"] == "refused"
    assert answer["problem"] == "This is not audio."
    assert answer["recording"] == ""


def test_owner_gets_the_address_of_the_recording(
    alice: User, upload: Upload, client_of: ClientOf
) -> None:
    recording = make_recording(alice)
    upload.state, upload.recording = UploadState.ACCEPTED, recording
    upload.save()
    answer = client_of(alice).get(f"/uploads/{upload.id}/status/").json()
    assert answer["recording"] == f"/recordings/{recording.id}/"


def test_stranger_gets_404(charlie: User, upload: Upload, client_of: ClientOf) -> None:
    assert client_of(charlie).get(f"/uploads/{upload.id}/status/").status_code == 404


def test_anonymous_is_sent_to_log_in(upload: Upload, client_of: ClientOf) -> None:
    response = client_of(None).get(f"/uploads/{upload.id}/status/")
    assert response.status_code == 302
    assert response["Location"].startswith("/accounts/login/")
