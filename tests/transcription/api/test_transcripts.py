"""REST v1: revisions, segments, formats and speakers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from tests.fakes.recordings import claim_of, make_job, progress
from transcription.formats import FORMATS
from transcription.models import Recording, RevisionKind, TranscriptSegment
from transcription.services import jobs, sharing
from webapp.accounts.models import User

pytestmark = pytest.mark.django_db

ClientOf = Callable[[User | None], Client]


@pytest.fixture
def transcribed(alice: User, sent: list[tuple[str, ...]]) -> Recording:
    """Alice's, with a draft and what was refined of it."""
    make_job(alice)
    claim = claim_of()
    jobs.store_progress(claim=claim, progress=progress("drafted", kind=RevisionKind.DRAFT))
    jobs.store_progress(claim=claim, progress=progress("first", "second", "third"))
    jobs.finish_job(claim=claim, model_name="scripted")
    TranscriptSegment.objects.filter(revision__kind=RevisionKind.REFINED).update(speaker="1")
    return Recording.objects.get()


def at(recording: Recording, path: str) -> str:
    return f"/api/v1/recordings/{recording.id}/{path}"


def test_revisions_are_listed_and_one_is_shown(
    client_of: ClientOf, alice: User, transcribed: Recording
) -> None:
    client = client_of(alice)
    items = client.get(at(transcribed, "revisions")).json()["items"]
    assert [(item["number"], item["kind"], item["is_shown"]) for item in items] == [
        (1, "draft", False),
        (2, "refined", True),
    ]
    assert client.get(f"/api/v1/recordings/{transcribed.id}").json()["revision"] == 2
    assert client.get(at(transcribed, "revisions/2")).json() == items[1]
    for number in ("3", "0", "-1", "9999999999999999999999", "x"):
        assert client.get(at(transcribed, f"revisions/{number}")).status_code == 404


def test_segments_come_in_pages_with_their_words(
    client_of: ClientOf,
    alice: User,
    transcribed: Recording,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    client, path = client_of(alice), at(transcribed, "revisions/2/segments")
    first = client.get(path, {"limit": 2}).json()
    with django_assert_max_num_queries(8):
        second = client.get(path, {"limit": 2, "cursor": first["next_cursor"]}).json()
    texts = [item["text"] for item in first["items"] + second["items"]]
    assert texts == ["first", "second", "third"]
    assert second["next_cursor"] is None
    item = first["items"][0]
    assert (item["speaker"], item["speaker_name"], item["language"]) == ("1", "Speaker 1", "en")
    assert item["words"] == [{"text": "first", "start_ms": 0, "end_ms": 900, "confidence": 0.9}]


@pytest.mark.parametrize("extension", FORMATS)
def test_every_format_comes_of_the_shown_revision_and_of_each(
    client_of: ClientOf, alice: User, transcribed: Recording, extension: str
) -> None:
    client = client_of(alice)
    shown = client.get(at(transcribed, f"transcript.{extension}"))
    assert shown.status_code == 200
    assert shown["Content-Type"] == FORMATS[extension].media_type
    assert "attachment" in shown["Content-Disposition"]
    draft = client.get(at(transcribed, f"revisions/1/transcript.{extension}"))
    assert b"second" in shown.content
    assert b"drafted" in draft.content


def test_no_other_format_and_no_stranger(
    client_of: ClientOf, alice: User, charlie: User, transcribed: Recording
) -> None:
    assert client_of(alice).get(at(transcribed, "transcript.exe")).status_code == 404
    for path in (
        "transcript.txt",
        "revisions",
        "revisions/2",
        "revisions/2/segments",
        "revisions/2/transcript.srt",
        "speakers",
    ):
        assert client_of(charlie).get(at(transcribed, path)).status_code == 404
        assert client_of(None).get(at(transcribed, path)).status_code == 401


def name(client: Client, recording: Recording, names: Any, **arguments: Any) -> Any:
    return client.patch(
        at(recording, "speakers"), {"names": names}, content_type="application/json", **arguments
    )


def test_speakers_get_names_by_editors(
    client_of: ClientOf, alice: User, bob: User, charlie: User, transcribed: Recording
) -> None:
    sharing.share_with(thing=transcribed, sharer=alice, with_=bob, can_edit=True)
    sharing.share_with(thing=transcribed, sharer=alice, with_=charlie, can_edit=False)
    assert name(client_of(charlie), transcribed, {"1": "Mallory"}).status_code == 404
    response = name(client_of(bob), transcribed, {"1": "Ada"})
    assert response.json()["speakers"] == [{"label": "1", "name": "Ada", "spoken_ms": 3000}]
    text = client_of(alice).get(at(transcribed, "transcript.txt")).content.decode()
    assert "Ada" in text


def test_names_of_a_list_that_has_changed_are_refused(
    client_of: ClientOf, alice: User, transcribed: Recording
) -> None:
    client = client_of(alice)
    known = {"If-Match": client.get(at(transcribed, "speakers"))["ETag"]}
    assert name(client, transcribed, {"1": "Ada"}, headers=known).status_code == 200
    assert name(client, transcribed, {"1": "Eve"}, headers=known).status_code == 412
    for names in ({"7": "Nobody"}, {"1": "x" * 101}, {"1": 5}, []):
        assert name(client, transcribed, names).status_code == 400
