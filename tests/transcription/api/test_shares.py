"""REST v1: sharing recordings and live sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tests.fakes.live import make_session
from tests.fakes.recordings import make_recording
from transcription.models import Share
from webapp.accounts.models import Team, User

pytestmark = pytest.mark.django_db

ClientOf = Callable[[User | None], Client]


@pytest.fixture(params=["recordings", "live-sessions"])
def path(request: pytest.FixtureRequest, alice: User) -> str:
    """Of something of Alice's; its shares."""
    thing = make_recording(alice) if request.param == "recordings" else make_session(alice)
    return f"/api/v1/{request.param}/{thing.id}"


def share(client: Client, path: str, asked: Any) -> Any:
    return client.post(f"{path}/shares", asked, content_type="application/json")


def test_a_person_reads_until_it_is_shared_no_more(
    client_of: ClientOf, alice: User, bob: User, path: str
) -> None:
    owner, reader = client_of(alice), client_of(bob)
    made = share(owner, path, {"person": "Bob@example.org"})
    assert made.status_code == 201, made.content
    assert made.json()["person"] == {"id": bob.pk, "name": "Bob"}
    assert reader.get(path).status_code == 200
    changed = share(owner, path, {"person": bob.email, "can_edit": True}).json()
    assert (changed["id"], changed["can_edit"]) == (made.json()["id"], True)
    assert len(owner.get(f"{path}/shares").json()["shares"]) == 1
    assert owner.delete(f"{path}/shares/{changed['id']}").status_code == 204
    assert reader.get(path).status_code == 404
    assert owner.delete(f"{path}/shares/{changed['id']}").status_code == 404


def test_a_team_reads(client_of: ClientOf, alice: User, bob: User, path: str) -> None:
    team = Team.objects.create(name="Sales")
    team.members.add(bob)
    made = share(client_of(alice), path, {"team": "sales"})
    assert made.json()["team"] == {"id": team.pk, "name": "Sales"}
    assert client_of(bob).get(path).status_code == 200


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"person": "bob@example.org", "team": "Sales"},
        {"person": "nobody@example.org"},
        {"person": "alice@example.org"},
        {"team": "None"},
        {"person": "\0"},
    ],
)
def test_nobody_to_share_with(
    client_of: ClientOf, alice: User, bob: User, path: str, asked: dict[str, str]
) -> None:
    assert share(client_of(alice), path, asked).status_code == 400
    assert not Share.objects.exists()


def test_only_the_owner_shares(
    client_of: ClientOf, alice: User, bob: User, charlie: User, path: str
) -> None:
    made = share(client_of(alice), path, {"person": bob.email, "can_edit": True}).json()
    for client, status in (
        (client_of(bob), 404),
        (client_of(charlie), 404),
        (client_of(None), 401),
    ):
        assert client.get(f"{path}/shares").status_code == status
        assert share(client, path, {"person": charlie.email}).status_code == status
        assert client.delete(f"{path}/shares/{made['id']}").status_code == status
    assert Share.objects.count() == 1
