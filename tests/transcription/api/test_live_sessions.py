"""REST v1: live sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from tests.fakes.live import final, make_session
from transcription.models import LiveSession, Visibility
from transcription.services import live_sessions, sharing
from webapp.accounts.models import User

pytestmark = pytest.mark.django_db

ClientOf = Callable[[User | None], Client]
LIST = "/api/v1/live-sessions"


def send(client: Client, method: str, path: str, body: Any = None, **arguments: Any) -> Any:
    call = getattr(client, method)
    return call(path, {} if body is None else body, content_type="application/json", **arguments)


def test_a_session_is_made_and_ended(client_of: ClientOf, alice: User) -> None:
    client = client_of(alice)
    asked = {"title": "Weekly", "language": "en", "reference": "call-7"}
    made = send(client, "post", LIST, asked)
    assert made.status_code == 201, made.content
    body = made.json()
    found = client.get(LIST, {"reference": "call-7"}).json()["items"]
    assert [item["id"] for item in found] == [body["id"]]
    assert client.get(LIST, {"reference": "call-8"}).json()["items"] == []
    assert (body["title"], body["state"], body["visibility"]) == ("Weekly", "created", "private")
    assert made["Location"].endswith(f"{LIST}/{body['id']}")
    ended = send(client, "post", f"{LIST}/{body['id']}/end")
    assert (ended.status_code, ended.json()["state"]) == (200, "ended")
    assert send(client, "post", f"{LIST}/{body['id']}/end").status_code == 200


def test_a_repeated_request_makes_one_session(client_of: ClientOf, alice: User) -> None:
    client, key = client_of(alice), {"Idempotency-Key": "a"}
    first = send(client, "post", LIST, {"title": "Weekly"}, headers=key)
    again = send(client, "post", LIST, {"title": "Weekly"}, headers=key)
    assert first.json()["id"] == again.json()["id"]
    other = send(client, "post", LIST, {"title": "Another"}, headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")
    assert LiveSession.objects.count() == 1


@pytest.mark.parametrize(
    "asked",
    [
        {"title": "x" * 301},
        {"language": "no code"},
        {"mode_ms": -1},
        {"visibility": "world"},
        {"title": "\0"},
    ],
)
def test_a_session_that_cannot_be_is_not_made(
    client_of: ClientOf, alice: User, asked: dict[str, Any]
) -> None:
    assert send(client_of(alice), "post", LIST, asked).status_code == 400
    assert not LiveSession.objects.exists()


def test_who_may_read_is_changed_by_the_owner_alone(
    client_of: ClientOf, alice: User, bob: User
) -> None:
    session = make_session(alice)
    sharing.share_with(thing=session, sharer=alice, with_=bob, can_edit=True)
    path, change = f"{LIST}/{session.id}", {"visibility": "organisation"}
    assert send(client_of(bob), "patch", path, change).status_code == 404
    assert send(client_of(bob), "post", f"{path}/end").status_code == 404
    client = client_of(alice)
    known = {"If-Match": client.get(path)["ETag"]}
    assert send(client, "patch", path, change, headers=known).status_code == 200
    assert send(client, "patch", path, change, headers=known).status_code == 412
    session.refresh_from_db()
    assert session.visibility == Visibility.ORGANISATION


def test_lists_hold_what_one_may_read(
    client_of: ClientOf,
    alice: User,
    charlie: User,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    make_session(alice, title="Private")
    make_session(alice, title="For all", visibility=Visibility.ORGANISATION)
    stranger = client_of(charlie)
    with django_assert_num_queries(3):
        body = stranger.get(LIST).json()
    assert [item["title"] for item in body["items"]] == ["For all"]
    assert client_of(charlie).get(LIST, {"owner": "me"}).json()["items"] == []
    assert len(client_of(alice).get(LIST, {"owner": "me"}).json()["items"]) == 2
    assert client_of(alice).get(LIST, {"state": "live"}).json()["items"] == []
    assert client_of(None).get(LIST).status_code == 401


def test_captions_are_read_on_from_what_is_known(
    client_of: ClientOf, alice: User, charlie: User
) -> None:
    session = make_session(alice)
    for number, text in enumerate(("one", "two", "three")):
        live_sessions.record_final(event=final(session, number, text))
    path = f"{LIST}/{session.id}/captions"
    body = client_of(alice).get(path).json()
    assert [caption["text"] for caption in body["captions"]] == ["one", "two", "three"]
    assert body["last_seq"] == 3
    rest = client_of(alice).get(path, {"after_seq": 2}).json()
    assert [caption["seq"] for caption in rest["captions"]] == [3]
    assert client_of(alice).get(path, {"after_seq": -1}).status_code == 400
    assert client_of(charlie).get(path).status_code == 404


def test_captions_come_as_text(client_of: ClientOf, alice: User, charlie: User) -> None:
    session = make_session(alice)
    live_sessions.record_final(event=final(session, 0, "Hello there."))
    path = f"{LIST}/{session.id}/captions"
    client = client_of(alice)
    assert client.get(f"{path}.txt").content.decode() == "Hello there.\n"
    assert client.get(f"{path}.vtt").content.startswith(b"WEBVTT")
    assert client.get(f"{path}.srt").status_code == 404
    assert client.get(f"{path}.txt", {"lines": 101}).status_code == 400
    assert client_of(charlie).get(f"{path}.txt").status_code == 404
