"""REST v1: uploads as they stand, beside the protocol that brings their bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from tests.fakes.recordings import make_upload
from transcription.services import uploads
from webapp.accounts.models import User

pytestmark = pytest.mark.django_db

ClientOf = Callable[[User | None], Client]
LIST = "/api/v1/uploads"


@pytest.fixture(autouse=True)
def unsent(sent: list[tuple[str, ...]]) -> None:
    """Nothing reaches a queue."""


def test_an_upload_tells_why_it_was_refused(
    client_of: ClientOf, alice: User, charlie: User
) -> None:
    upload, client = make_upload(alice), client_of(alice)
    body = client.get(f"{LIST}/{upload.id}").json()
    assert (body["state"], body["offset_bytes"], body["problem"]) == ("checking", 3, None)
    uploads.refuse_upload(upload=upload, code="no_audio", problem="There is no sound in it.")
    body = client.get(f"{LIST}/{upload.id}").json()
    assert body["problem"] == {"code": "no_audio", "sentence": "There is no sound in it."}
    assert client_of(charlie).get(f"{LIST}/{upload.id}").status_code == 404
    assert client_of(None).get(f"{LIST}/{upload.id}").status_code == 401


def test_a_list_holds_ones_own(client_of: ClientOf, alice: User, charlie: User) -> None:
    make_upload(alice)
    assert len(client_of(alice).get(LIST).json()["items"]) == 1
    assert client_of(alice).get(LIST, {"state": "refused"}).json()["items"] == []
    assert client_of(charlie).get(LIST).json()["items"] == []
    assert client_of(None).get(LIST).status_code == 401
