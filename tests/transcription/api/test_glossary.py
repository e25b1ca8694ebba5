"""REST v1: the glossary and a recording's own terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tests.fakes.recordings import make_recording
from transcription.models import GlossaryTerm
from webapp.accounts.models import User

pytestmark = pytest.mark.django_db

ClientOf = Callable[[User | None], Client]
LIST = "/api/v1/glossary"
JSON = "application/json"


def write(client: Client, asked: Any, **arguments: Any) -> Any:
    return client.post(LIST, asked, content_type=JSON, **arguments)


def test_terms_are_written_changed_and_forgotten(client_of: ClientOf, administrator: User) -> None:
    client = client_of(administrator)
    made = write(client, {"phrase": "Kubernetes"})
    assert made.status_code == 201, made.content
    path = f"{LIST}/{made.json()['id']}"
    assert made["Location"].endswith(path)
    again = write(client, {"phrase": "kubernetes", "weight": 5})
    assert (again.json()["id"], again.json()["weight"]) == (made.json()["id"], 5)
    tag = {"If-Match": client.get(path)["ETag"]}
    change = {"phrase": "K8s", "weight": 2}
    assert client.put(path, change, content_type=JSON, headers=tag).json()["phrase"] == "K8s"
    assert client.put(path, change, content_type=JSON, headers=tag).status_code == 412
    assert client.delete(path, headers=tag).status_code == 412
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404


def test_the_list_is_searched_and_comes_in_pages(client_of: ClientOf, administrator: User) -> None:
    for phrase in ("Anna", "Annika", "Berta"):
        GlossaryTerm.objects.create(phrase=phrase)
    client = client_of(administrator)
    first = client.get(LIST, {"limit": 2}).json()
    second = client.get(LIST, {"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [term["phrase"] for term in first["items"] + second["items"]] == [
        "Anna",
        "Annika",
        "Berta",
    ]
    found = client.get(LIST, {"q": "ann"}).json()["items"]
    assert [term["phrase"] for term in found] == ["Anna", "Annika"]


def test_only_administrators_have_the_glossary(client_of: ClientOf, alice: User) -> None:
    term = GlossaryTerm.objects.create(phrase="Anna")
    for client, status in ((client_of(alice), 404), (client_of(None), 401)):
        assert client.get(LIST).status_code == status
        assert write(client, {"phrase": "Eve"}).status_code == status
        assert client.get(f"{LIST}/{term.pk}").status_code == status
        assert client.delete(f"{LIST}/{term.pk}").status_code == status


@pytest.mark.parametrize(
    "asked", [{}, {"phrase": ""}, {"phrase": "…"}, {"phrase": "a", "weight": 11}, {"phrase": "\0"}]
)
def test_what_is_no_term_is_refused(
    client_of: ClientOf, administrator: User, asked: dict[str, Any]
) -> None:
    assert write(client_of(administrator), asked).status_code == 400
    assert not GlossaryTerm.objects.exists()


def test_keys_that_cannot_be_lead_nowhere(client_of: ClientOf, administrator: User) -> None:
    for key in ("0", "-1", "99999999999999999999999", "x"):
        assert client_of(administrator).get(f"{LIST}/{key}").status_code == 404


def test_a_recording_has_terms_of_its_own(client_of: ClientOf, alice: User, charlie: User) -> None:
    recording = make_recording(alice)
    path = f"/api/v1/recordings/{recording.id}/terms"
    client = client_of(alice)
    tag = {"If-Match": client.get(path)["ETag"]}
    asked = {"terms": [{"phrase": "Ada"}, {"phrase": "Bob", "weight": 1.5}]}
    written = client.put(path, asked, content_type=JSON, headers=tag)
    assert written.json()["terms"][1] == {"phrase": "Bob", "weight": 1.5}
    assert client.put(path, {"terms": []}, content_type=JSON, headers=tag).status_code == 412
    assert client.put(path, {"terms": []}, content_type=JSON).json() == {"terms": []}
    assert client_of(charlie).put(path, asked, content_type=JSON).status_code == 404
