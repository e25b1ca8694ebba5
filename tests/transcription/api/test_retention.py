"""REST v1, for administrators: retention."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.fakes.recordings import make_recording
from transcription.models import PurgeRun, Recording, RetentionPolicy
from webapp.accounts.models import Team, User

pytestmark = pytest.mark.django_db

ClientOf = Callable[[User | None], Client]
PATH = "/api/v1/retention"


def send(client: Client, method: str, path: str, body: Any = None, **arguments: Any) -> Any:
    call = getattr(client, method)
    return call(path, {} if body is None else body, content_type="application/json", **arguments)


def test_new_rules_wait_and_are_taken_back(client_of: ClientOf, administrator: User) -> None:
    client = client_of(administrator)
    made = send(client, "post", PATH, {"transcript_days": 90, "trash_days": 14})
    assert made.status_code == 201, made.content
    body = client.get(PATH).json()
    assert body["organisation"]["transcript_days"] is None
    assert [policy["transcript_days"] for policy in body["waiting"]] == [90]
    assert client.delete(f"{PATH}/{made.json()['id']}").status_code == 204
    assert client.delete(f"{PATH}/{made.json()['id']}").status_code == 404
    assert not RetentionPolicy.objects.exists()


def test_rules_in_force_are_shown_for_each_team(client_of: ClientOf, administrator: User) -> None:
    team = Team.objects.create(name="Sales")
    long_ago = timezone.now() - timedelta(days=9)
    RetentionPolicy.objects.create(transcript_days=100, takes_effect_at=long_ago)
    RetentionPolicy.objects.create(team=team, audio_days=5, takes_effect_at=long_ago)
    body = client_of(administrator).get(PATH).json()
    assert body["organisation"]["transcript_days"] == 100
    assert [(rules["team"], rules["audio_days"]) for rules in body["teams"]] == [(team.pk, 5)]


def test_a_preview_counts_and_stores_nothing(
    client_of: ClientOf, administrator: User, alice: User
) -> None:
    make_recording(alice, created_at=timezone.now() - timedelta(days=400))
    response = send(client_of(administrator), "post", f"{PATH}/preview", {"transcript_days": 90})
    assert response.status_code == 200, response.content
    nights = response.json()["nights"]
    assert sum(night["trashed"] for night in nights) == 1
    assert nights[0]["trashed"] == 1
    assert not RetentionPolicy.objects.exists()


@pytest.mark.parametrize(
    "asked",
    [
        {"transcript_days": 0},
        {"transcript_days": -1},
        {"transcript_days": 99999},
        {"transcript_days": 10, "audio_days": 20},
        {"team": 12345},
        {"transcript_days": "soon"},
        {"transcript_days": True},
    ],
)
def test_rules_that_cannot_be_are_refused(
    client_of: ClientOf, administrator: User, asked: dict[str, Any]
) -> None:
    client = client_of(administrator)
    response = send(client, "post", PATH, asked)
    assert response.status_code == 400
    assert send(client, "post", f"{PATH}/preview", asked).status_code == 400
    assert not RetentionPolicy.objects.exists()


def test_a_recording_is_held_and_released(
    client_of: ClientOf, administrator: User, alice: User
) -> None:
    recording, client = make_recording(alice), client_of(administrator)
    path = f"{PATH}/holds/{recording.id}"
    held = send(client, "put", path, {"reason": "Lawsuit 7"})
    assert held.json() == {"is_held": True, "reason": "Lawsuit 7"}
    assert client_of(alice).delete(f"/api/v1/recordings/{recording.id}").status_code == 409
    assert client.delete(path).status_code == 204
    assert not Recording.objects.get().is_held
    assert send(client, "put", path, {"reason": ""}).status_code == 400
    assert send(client_of(alice), "put", path, {"reason": "Mine"}).status_code == 404


def test_purges_are_listed(client_of: ClientOf, administrator: User, alice: User) -> None:
    PurgeRun.objects.create(counts={"deleted": 3}, finished_at=timezone.now())
    items = client_of(administrator).get(f"{PATH}/runs").json()["items"]
    assert [run["counts"] for run in items] == [{"deleted": 3}]
    assert client_of(alice).get(f"{PATH}/runs").status_code == 404
