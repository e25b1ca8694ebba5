"""The player's bytes: ranges, caching, rights; in small pieces whatever the size."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from tests.fakes.recordings import make_recording
from transcription.api.media import PIECE_BYTES
from transcription.models import Recording
from webapp.accounts.models import User

ClientOf = Callable[[User | None], Client]
CONTENT = bytes(range(256)) * 4096  # 1 MB


@pytest.fixture
def recording(alice: User) -> Recording:
    made = make_recording(alice, content=CONTENT)
    (made.folder / "peaks.json").write_text("[1, 2, 3]")
    return made


def address_of(recording: Recording, name: str = "recording_media") -> str:
    return reverse(name, args=[recording.id])


def pieces_of(response: Any) -> list[bytes]:
    async def read() -> list[bytes]:
        return [piece async for piece in response]

    return async_to_sync(read)()


def test_the_whole_comes_in_small_pieces(
    alice: User, client_of: ClientOf, recording: Recording
) -> None:
    response = client_of(alice).get(address_of(recording))
    pieces = pieces_of(response)
    assert response.status_code == HTTPStatus.OK
    assert b"".join(pieces) == CONTENT
    assert max(map(len, pieces)) <= PIECE_BYTES
    assert response["Content-Type"] == "audio/mpeg"
    assert response["Content-Disposition"] == "inline"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Accept-Ranges"] == "bytes"
    assert response["Content-Length"] == str(len(CONTENT))


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=100-", 100, len(CONTENT)),
        ("bytes=-500", len(CONTENT) - 500, len(CONTENT)),
        ("bytes=10-99999999", 10, len(CONTENT)),
        ("bytes=300000-900000", 300_000, 900_001),
    ],
)
def test_a_range_is_answered_with_206(
    asked: str, start: int, end: int, alice: User, client_of: ClientOf, recording: Recording
) -> None:
    response = client_of(alice).get(address_of(recording), headers={"Range": asked})
    assert response.status_code == HTTPStatus.PARTIAL_CONTENT
    assert response["Content-Range"] == f"bytes {start}-{end - 1}/{len(CONTENT)}"
    assert b"".join(pieces_of(response)) == CONTENT[start:end]


@pytest.mark.parametrize("asked", [f"bytes={len(CONTENT)}-", "bytes=-0"])
def test_a_range_outside_is_answered_with_416(
    asked: str, alice: User, client_of: ClientOf, recording: Recording
) -> None:
    response = client_of(alice).get(address_of(recording), headers={"Range": asked})
    assert response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
    assert response["Content-Range"] == f"bytes */{len(CONTENT)}"


@pytest.mark.parametrize(
    "asked", ["bytes=0-1,5-6", "lines=1-2", "bytes=9-1", "bytes=-", "nonsense"]
)
def test_what_is_no_single_range_gets_the_whole(
    asked: str, alice: User, client_of: ClientOf, recording: Recording
) -> None:
    response = client_of(alice).get(address_of(recording), headers={"Range": asked})
    assert response.status_code == HTTPStatus.OK
    assert b"".join(pieces_of(response)) == CONTENT


def test_head_tells_the_length_without_a_body(
    alice: User, client_of: ClientOf, recording: Recording
) -> None:
    response = client_of(alice).head(address_of(recording))
    assert response["Content-Length"] == str(len(CONTENT))
    assert not response.streaming
    assert response.content == b""


def test_what_the_browser_has_is_not_sent_again(
    alice: User, client_of: ClientOf, recording: Recording
) -> None:
    client, address = client_of(alice), address_of(recording)
    etag = client.head(address)["ETag"]
    unchanged = client.get(address, headers={"If-None-Match": etag})
    assert unchanged.status_code == HTTPStatus.NOT_MODIFIED
    fresh = {"Range": "bytes=0-0", "If-Range": etag}
    assert client.head(address, headers=fresh).status_code == HTTPStatus.PARTIAL_CONTENT
    stale = {"Range": "bytes=0-0", "If-Range": '"older"'}
    assert client.head(address, headers=stale).status_code == HTTPStatus.OK


def test_peaks_are_json(alice: User, client_of: ClientOf, recording: Recording) -> None:
    response = client_of(alice).get(address_of(recording, "recording_peaks"))
    assert response["Content-Type"] == "application/json"
    assert b"".join(pieces_of(response)) == b"[1, 2, 3]"


@pytest.mark.parametrize("name", ["recording_media", "recording_peaks"])
def test_only_those_who_may_see_the_recording_hear_it(
    name: str,
    charlie: User,
    administrator: User,
    client_of: ClientOf,
    recording: Recording,
) -> None:
    address = address_of(recording, name)
    assert client_of(None).head(address).status_code == HTTPStatus.UNAUTHORIZED
    assert client_of(charlie).head(address).status_code == HTTPStatus.NOT_FOUND
    assert client_of(administrator).head(address).status_code == HTTPStatus.NOT_FOUND
    Recording.objects.update(is_organisation_wide=True)
    assert client_of(charlie).head(address).status_code == HTTPStatus.OK
    assert client_of(None).head(address).status_code == HTTPStatus.UNAUTHORIZED
    Recording.objects.update(is_organisation_wide=False)
    assert client_of(charlie).head(address).status_code == HTTPStatus.NOT_FOUND


def test_somebody_who_follows_a_link_gets_a_page(
    charlie: User, client_of: ClientOf, recording: Recording
) -> None:
    page = {"Accept": "text/html,*/*"}
    login = client_of(None).get(address_of(recording), headers=page)
    assert login.status_code == HTTPStatus.FOUND
    assert login["Location"].startswith("/accounts/login/?next=/recordings/")


def test_audio_that_is_missing_on_disk_is_not_found(
    alice: User, client_of: ClientOf, recording: Recording
) -> None:
    recording.player_path.unlink()
    response = client_of(alice).get(address_of(recording))
    assert response.status_code == HTTPStatus.NOT_FOUND
    assert response["Content-Type"] == "application/problem+json"


def test_queries(
    alice: User,
    client_of: ClientOf,
    recording: Recording,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    client = client_of(alice)
    with django_assert_max_num_queries(3):  # session, person, recording
        client.head(address_of(recording))
