"""The tus protocol as a client sees it: creation, pieces, resuming, refusals, rights."""

from __future__ import annotations

import base64
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from transcription.models import Upload, UploadState
from transcription.services import rate_limits, storage, uploads
from webapp.accounts.models import ApiToken, Scope, User

ClientOf = Callable[[User | None], Client]

TUS = {"Tus-Resumable": "1.0.0"}
COLLECTION = "/api/v1/uploads/"


def metadata(**values: str) -> str:
    return ",".join(f"{key} {base64.b64encode(v.encode()).decode()}" for key, v in values.items())


def create(client: Client, length: int | str = 6, **headers: str) -> HttpResponse:
    return client.post(
        COLLECTION,
        content_type="application/octet-stream",
        headers={
            **TUS,
            "Upload-Length": str(length),
            "Upload-Metadata": metadata(filename="talk.wav", language="en"),
            **headers,
        },
    )


def patch(client: Client, address: str, offset: int | str, body: bytes, **options: Any) -> Any:
    headers = {**TUS, "Upload-Offset": str(offset), **options.pop("headers", {})}
    kind = options.pop("content_type", "application/offset+octet-stream")
    return client.patch(address, body, content_type=kind, headers=headers, **options)


def address_of(upload: Upload) -> str:
    return reverse("api_upload", args=[upload.id])


@pytest.fixture
def upload(alice: User) -> Upload:
    return uploads.create_upload(owner=alice, display_name="talk.wav", length_bytes=6)


def test_upload_is_made_with_its_name_language_and_length(alice: User, client_of: ClientOf) -> None:
    response = create(client_of(alice))
    upload = Upload.objects.get()
    assert response.status_code == HTTPStatus.CREATED
    assert response["Location"].endswith(address_of(upload))
    assert response["Tus-Resumable"] == "1.0.0"
    assert "Upload-Expires" in response
    assert (upload.owner, upload.display_name, upload.language, upload.length_bytes) == (
        alice,
        "talk.wav",
        "en",
        6,
    )


def test_an_upload_says_how_it_is_to_be_transcribed(alice: User, client_of: ClientOf) -> None:
    asked = metadata(filename="a.wav", language="mul", speakers="3", draft_only="true")
    assert create(client_of(alice), **{"Upload-Metadata": asked}).status_code == HTTPStatus.CREATED
    upload = Upload.objects.get()
    assert (upload.language, upload.mixes_languages, upload.is_draft_only) == ("", True, True)
    assert (upload.finds_speakers, upload.speaker_count) == (True, 3)


def test_an_aborted_upload_is_resumed_where_it_stopped(
    alice: User, client_of: ClientOf, upload: Upload
) -> None:
    client, address = client_of(alice), address_of(upload)
    assert patch(client, address, 0, b"abcd")["Upload-Offset"] == "4"
    asked = client.head(address, headers=TUS)
    assert (asked["Upload-Offset"], asked["Upload-Length"]) == ("4", "6")
    assert asked["Cache-Control"] == "no-store"
    last = patch(client, address, 4, b"ef")
    assert (last.status_code, last["Upload-Offset"]) == (HTTPStatus.NO_CONTENT, "6")
    upload.refresh_from_db()
    assert upload.state == UploadState.CHECKING
    assert upload.part_path.read_bytes() == b"abcdef"
    assert client.head(address, headers=TUS)["Upload-Offset"] == "6"


def test_options_say_what_the_server_can_do(
    alice: User, client_of: ClientOf, settings: Settings
) -> None:
    response = client_of(alice).options(COLLECTION)
    assert response["Tus-Version"] == "1.0.0"
    assert response["Tus-Extension"] == "creation,expiration,termination"
    assert response["Tus-Max-Size"] == str(settings.SITE.max_upload_bytes)


def test_delete_forgets_the_upload(alice: User, client_of: ClientOf, upload: Upload) -> None:
    client, address = client_of(alice), address_of(upload)
    assert client.delete(address, headers=TUS).status_code == HTTPStatus.NO_CONTENT
    assert client.head(address, headers=TUS).status_code == HTTPStatus.NOT_FOUND
    assert not upload.folder.exists()


def test_post_may_stand_for_another_method(
    alice: User, client_of: ClientOf, upload: Upload
) -> None:
    client, address = client_of(alice), address_of(upload)
    appended = client.post(
        address,
        b"abc",
        content_type="application/offset+octet-stream",
        headers={**TUS, "Upload-Offset": "0", "X-HTTP-Method-Override": "PATCH"},
    )
    assert appended["Upload-Offset"] == "3"
    override = {**TUS, "X-HTTP-Method-Override": "DELETE"}
    assert client.post(address, headers=override).status_code == HTTPStatus.NO_CONTENT
    assert client.post(address, headers=TUS).status_code == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("method", ["head", "patch", "delete", "options"])
def test_strangers_and_administrators_get_404_and_anonymous_401(
    method: str,
    charlie: User,
    administrator: User,
    client_of: ClientOf,
    upload: Upload,
) -> None:
    def ask(person: User | None) -> int:
        client = client_of(person)
        if method == "patch":
            return int(patch(client, address_of(upload), 0, b"abc").status_code)
        return int(getattr(client, method)(address_of(upload), headers=TUS).status_code)

    assert ask(None) == HTTPStatus.UNAUTHORIZED
    if method != "options":
        assert ask(charlie) == HTTPStatus.NOT_FOUND
        assert ask(administrator) == HTTPStatus.NOT_FOUND
    upload.refresh_from_db()
    assert upload.offset_bytes == 0


def test_anonymous_cannot_make_an_upload(db: None, client_of: ClientOf) -> None:
    response = create(client_of(None))
    assert response.status_code == HTTPStatus.UNAUTHORIZED
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["code"] == "not_authenticated"
    assert not Upload.objects.exists()


def test_a_disabled_person_is_refused(alice: User, client_of: ClientOf, upload: Upload) -> None:
    client = client_of(alice)
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert client.head(address_of(upload), headers=TUS).status_code == HTTPStatus.UNAUTHORIZED


def test_a_cookie_needs_the_csrf_header(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    refused = create(client)
    assert refused.status_code == HTTPStatus.FORBIDDEN
    assert refused.json()["code"] == "forbidden"
    client.cookies["csrftoken"] = "a" * 32
    response = create(client, **{"X-CSRFToken": "a" * 32})
    assert response.status_code == HTTPStatus.CREATED
    address = address_of(Upload.objects.get())
    assert patch(client, address, 0, b"abc").status_code == HTTPStatus.FORBIDDEN
    sent = patch(client, address, 0, b"abc", headers={"X-CSRFToken": "a" * 32})
    assert sent.status_code == HTTPStatus.NO_CONTENT


def test_a_token_stands_for_its_person_and_needs_no_csrf(alice: User, bob: User) -> None:
    client = Client(enforce_csrf_checks=True)
    _, secret = ApiToken.issue(user=alice, name="meeting room")
    response = create(client, Authorization=f"Bearer {secret}")
    assert response.status_code == HTTPStatus.CREATED
    upload = Upload.objects.get()
    assert upload.owner == alice
    _, others = ApiToken.issue(user=bob, name="other")
    headers = {**TUS, "Authorization": f"Bearer {others}"}
    assert client.head(address_of(upload), headers=headers).status_code == HTTPStatus.NOT_FOUND


def test_token_without_the_scope_is_told_which_one_it_lacks(alice: User) -> None:
    _, secret = ApiToken.issue(user=alice, name="reader", scopes=[Scope.RECORDINGS_READ])
    response = create(Client(), Authorization=f"Bearer {secret}")
    assert (response.status_code, response.json()["code"]) == (403, "missing_scope")
    assert "recordings:write" in response.json()["detail"]
    assert 'scope="recordings:write"' in response["WWW-Authenticate"]
    assert not Upload.objects.exists()


def test_unknown_expired_and_disabled_tokens_are_refused(alice: User) -> None:
    _, expired = ApiToken.issue(user=alice, name="old", expires_at=timezone.now())
    for secret in ("tr_unknown", expired, ""):
        response = create(Client(), Authorization=f"Bearer {secret}")
        assert response.status_code == HTTPStatus.UNAUTHORIZED
        assert response["WWW-Authenticate"] == "Bearer"


def test_address_with_too_many_wrong_tokens_is_told_to_slow_down(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limits, "REFUSED_TOKENS", 2)
    client = Client(REMOTE_ADDR="192.0.2.77")
    statuses = [create(client, Authorization="Bearer tr_old").status_code for _ in range(3)]
    assert statuses == [401, 401, 429]


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Tus-Resumable": "0.2.2"}, HTTPStatus.PRECONDITION_FAILED, "tus_version"),
        ({"Upload-Length": ""}, HTTPStatus.BAD_REQUEST, "invalid_input"),
        ({"Upload-Length": "-1"}, HTTPStatus.BAD_REQUEST, "invalid_input"),
        ({"Upload-Length": "9" * 30}, HTTPStatus.BAD_REQUEST, "invalid_input"),
        ({"Upload-Length": "0"}, HTTPStatus.UNPROCESSABLE_ENTITY, "empty_audio"),
        ({"Upload-Length": "9" * 15}, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large"),
        ({"Upload-Metadata": "filename %%%"}, HTTPStatus.BAD_REQUEST, "invalid_input"),
        ({"Upload-Metadata": "filename /w=="}, HTTPStatus.BAD_REQUEST, "invalid_input"),
        ({"Upload-Metadata": "a " + "A" * 5000}, HTTPStatus.BAD_REQUEST, "invalid_input"),
        ({"Upload-Metadata": metadata(language="<b>")}, HTTPStatus.BAD_REQUEST, "invalid_input"),
        ({"Upload-Metadata": metadata(speakers="many")}, HTTPStatus.BAD_REQUEST, "invalid_input"),
    ],
)
def test_bad_creations_are_refused_with_a_sentence(
    headers: dict[str, str], status: int, code: str, alice: User, client_of: ClientOf
) -> None:
    response = create(client_of(alice), **headers)
    problem = response.json()
    assert (response.status_code, problem["code"], problem["status"]) == (status, code, status)
    assert problem["detail"].endswith(".")
    assert not Upload.objects.exists()


def test_a_full_disk_is_said_before_the_first_byte(
    alice: User, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "free_bytes", lambda: 5)
    response = create(client_of(alice), 6)
    assert response.status_code == HTTPStatus.INSUFFICIENT_STORAGE
    assert "disk is full" in response.json()["detail"]


@pytest.mark.parametrize(
    ("offset", "options", "status", "code"),
    [
        (1, {}, HTTPStatus.CONFLICT, "stale_offset"),
        ("x", {}, HTTPStatus.BAD_REQUEST, "invalid_input"),
        (0, {"content_type": "video/mp4"}, HTTPStatus.UNSUPPORTED_MEDIA_TYPE, None),
        (0, {"headers": {"Tus-Resumable": ""}}, HTTPStatus.PRECONDITION_FAILED, "tus_version"),
    ],
)
def test_bad_pieces_are_refused(
    offset: int | str,
    options: dict[str, Any],
    status: int,
    code: str | None,
    alice: User,
    client_of: ClientOf,
    upload: Upload,
) -> None:
    response = patch(client_of(alice), address_of(upload), offset, b"abc", **options)
    assert response.status_code == status
    assert code in {None, response.json()["code"]}
    upload.refresh_from_db()
    assert upload.offset_bytes == 0


def test_a_piece_beyond_the_length_is_refused(
    alice: User, client_of: ClientOf, upload: Upload
) -> None:
    response = patch(client_of(alice), address_of(upload), 0, b"abcdefg")
    assert response.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert upload.part_path.read_bytes() == b""


def test_two_requests_cannot_write_at_once(
    alice: User, client_of: ClientOf, upload: Upload
) -> None:
    client, address = client_of(alice), address_of(upload)
    with storage.exclusive(upload.part_path):
        busy = patch(client, address, 0, b"abc")
    assert busy.status_code == HTTPStatus.LOCKED
    assert busy.json()["is_retryable"] is True
    assert patch(client, address, 0, b"abc").status_code == HTTPStatus.NO_CONTENT


def test_unknown_uploads_and_methods_are_refused(alice: User, client_of: ClientOf) -> None:
    client = client_of(alice)
    unknown = reverse("api_upload", args=[uuid4()])
    assert client.head(unknown, headers=TUS).status_code == HTTPStatus.NOT_FOUND
    refused = client.get(COLLECTION)
    assert refused.status_code == HTTPStatus.METHOD_NOT_ALLOWED
    assert refused["Allow"] == "POST, OPTIONS"


def test_a_fault_of_the_server_is_a_problem_too(
    alice: User, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> int:
        raise RuntimeError("text that must not leave")

    monkeypatch.setattr(storage, "free_bytes", fail)
    response = create(client_of(alice))
    assert response.status_code == HTTPStatus.INTERNAL_SERVER_ERROR
    assert response.json()["code"] == "error"
    assert b"must not leave" not in response.content


def test_hazardous_names_stay_out_of_paths_and_headers(alice: User, client_of: ClientOf) -> None:
    for name in ("../../x.wav", "a\r\nX: y.wav", "\u202egpj.wav", "…" * 85, "..", "会" * 84):
        response = create(client_of(alice), **{"Upload-Metadata": metadata(filename=name)})
        assert response.status_code == HTTPStatus.CREATED
        assert name not in response["Location"]
    for upload in Upload.objects.all():
        assert upload.part_path.name == "part.bin"
        assert upload.part_path.exists()


def test_queries_of_a_piece_do_not_grow(
    alice: User,
    client_of: ClientOf,
    upload: Upload,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    client, address = client_of(alice), address_of(upload)
    # Session, person, upload, its row under the lock, the offset, the row as it is now.
    with django_assert_max_num_queries(6):
        patch(client, address, 0, b"abc")
