"""Limits of requests: each kind has its own, says how it stands, and refuses with 429."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.test import Client

from tests.fakes.live import make_session
from tests.fakes.pages import write_transcript
from tests.fakes.recordings import make_recording
from transcription.models import RecordingState
from transcription.services import rate_limits, share_links, uploads
from transcription.services.rate_limits import Kind
from webapp.accounts.models import User

ClientOf = Callable[[User | None], Client]

OF_A_PERSON = {
    "/recordings/{recording}/media": Kind.FILE,
    "/recordings/{recording}/peaks.json": Kind.FILE,
    "/recordings/{recording}/export.txt": Kind.FILE,
    "/live/{session}/captions.txt": Kind.FILE,
    "/live/{session}/captions.vtt": Kind.FILE,
    "/api/v1/uploads/{upload}": Kind.PIECE,
}
BEHIND_LINKS = (
    "/r/{recording_link}/media",
    "/r/{recording_link}/peaks.json",
    "/r/{recording_link}/export.txt",
    "/s/{session_link}/captions.txt",
    "/s/{session_link}/captions.vtt",
)


@pytest.fixture
def names(alice: User) -> dict[str, str]:
    recording = make_recording(alice, state=RecordingState.READY)
    (recording.folder / "peaks.json").write_text("[1]")
    write_transcript(recording, "Good morning.")
    session = make_session(alice)
    upload = uploads.create_upload(owner=alice, display_name="talk.wav", length_bytes=6)
    of_recording = share_links.create_share_link(thing=recording, hours=24, made_by=alice)[1]
    of_session = share_links.create_share_link(thing=session, hours=4, made_by=alice)[1]
    return {
        "recording": str(recording.id),
        "session": str(session.id),
        "upload": str(upload.id),
        "recording_link": of_recording,
        "session_link": of_session,
    }


@pytest.fixture
def two_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Kind], None]:
    """`two_of(kind)`: two requests of this kind in a minute, counted anew for this test."""

    def limit(limited: Kind) -> None:
        test = uuid4().hex
        monkeypatch.setattr(rate_limits, "person", lambda user: f"{test}.{user.pk}")
        monkeypatch.setattr(rate_limits, "address", lambda remote: f"{test}.{remote}")
        monkeypatch.setattr(rate_limits, "_most", lambda kind: 2 if kind == limited else 1000)

    return limit


@pytest.mark.parametrize(("path", "kind"), OF_A_PERSON.items())
def test_a_person_is_told_what_is_left_and_when_it_is_too_much(
    path: str,
    kind: Kind,
    names: dict[str, str],
    two_of: Callable[[Kind], None],
    alice: User,
    bob: User,
    client_of: ClientOf,
) -> None:
    two_of(kind)
    client, address = client_of(alice), path.format(**names)
    answers = [client.get(address) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [answer["RateLimit-Remaining"] for answer in answers] == ["1", "0", "0"]
    assert {answer["RateLimit-Limit"] for answer in answers} == {"2"}
    assert answers[2]["Content-Type"] == "application/problem+json"
    assert answers[2].json()["is_retryable"] is True
    assert answers[2]["Retry-After"] == answers[2]["RateLimit-Reset"]
    assert "Retry-After" not in answers[1]
    assert client_of(bob).get(address).status_code == 404  # counted apart
    assert client.get("/api/v1/recordings").status_code == 200  # another kind


@pytest.mark.parametrize("path", BEHIND_LINKS)
def test_an_address_that_reads_by_links_has_a_limit_of_its_own(
    path: str, names: dict[str, str], two_of: Callable[[Kind], None], client_of: ClientOf
) -> None:
    two_of(Kind.LINKED_FILE)
    address = path.format(**names)
    answers = [client_of(None).get(address) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [answer["RateLimit-Remaining"] for answer in answers] == ["1", "0", "0"]
    assert answers[2]["Retry-After"] == answers[2]["RateLimit-Reset"]
    assert answers[2]["Referrer-Policy"] == "no-referrer"
    elsewhere = client_of(None).get(address, REMOTE_ADDR="192.0.2.9")
    assert elsewhere.status_code == 200


def test_the_pieces_of_an_upload_are_limited_and_the_rest_waits(
    names: dict[str, str], two_of: Callable[[Kind], None], alice: User, client_of: ClientOf
) -> None:
    two_of(Kind.PIECE)
    client, address = client_of(alice), f"/api/v1/uploads/{names['upload']}"
    statuses = [
        client.patch(
            address,
            b"ab",
            content_type="application/offset+octet-stream",
            headers={"Tus-Resumable": "1.0.0", "Upload-Offset": str(offset)},
        ).status_code
        for offset in (0, 2, 4)
    ]
    assert statuses == [204, 204, 429]


def test_somebody_who_follows_a_link_gets_a_page(
    names: dict[str, str], two_of: Callable[[Kind], None], alice: User, client_of: ClientOf
) -> None:
    two_of(Kind.FILE)
    client, address = client_of(alice), f"/recordings/{names['recording']}/export.txt"
    answers = [client.get(address, headers={"Accept": "text/html"}) for _ in range(3)]
    assert answers[2].status_code == 429
    assert "Too many requests in this minute." in answers[2].content.decode()
    assert answers[2]["Content-Type"].startswith("text/html")


def test_a_player_and_an_upload_have_more_room_than_the_rest() -> None:
    assert rate_limits._most(Kind.REQUEST) < rate_limits._most(Kind.FILE)
    assert rate_limits._most(Kind.FILE) < rate_limits._most(Kind.PIECE)
