"""REST v1 as a whole: its description, its page, its border and its limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.fakes.recordings import make_recording
from transcription.errors import NotFoundError
from transcription.models import Upload
from transcription.services import rate_limits
from webapp.accounts.models import Scope, User

pytestmark = pytest.mark.django_db

ClientOf = Callable[[User | None], Client]


def description(client: Client) -> dict[str, Any]:
    body: dict[str, Any] = client.get("/api/v1/openapi.json").json()
    return body


def operations(client: Client) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in description(client)["paths"].items():
        for method, details in methods.items():
            yield path, method, details


def test_every_operation_says_who_may_and_how_it_refuses(client_of: ClientOf) -> None:
    seen = set()
    for path, method, details in operations(client_of(None)):
        token, session = details["security"]
        assert set(token["token"]) <= set(Scope), (path, method)
        assert token["token"], (path, method)
        assert session == {"session": []}
        assert details["responses"]["default"] == {"$ref": "#/components/responses/Problem"}
        assert details["operationId"] not in seen
        seen.add(details["operationId"])
        assert details["description"]
        assert path.startswith("/api/v1/")
    assert len(seen) > 50


def test_every_reference_leads_somewhere(client_of: ClientOf) -> None:
    whole = description(client_of(None))
    for reference in re.findall(r"'\$ref': '#/([^']+)'", str(whole)):
        place: Any = whole
        for step in reference.split("/"):
            place = place[step]


def test_whoever_is_nobody_is_refused_everywhere(client_of: ClientOf) -> None:
    client = client_of(None)
    some_id = "00000000-0000-4000-8000-000000000000"
    for path, method, _ in operations(client):
        address = re.sub(r"{\w+_id}", some_id, path)
        address = re.sub(r"{(user|team|term|share|policy)_id}", "1", address)
        address = address.replace("{number}", "1").replace("{extension}", "txt")
        if some_id in address and re.search(r"(users|teams|glossary|retention)/0", address):
            address = address.replace(some_id, "1", 1)
        response = client.generic(method.upper(), address)
        assert response.status_code == 401, (method, address)
        assert response["WWW-Authenticate"] == "Bearer"


def test_the_page_loads_nothing_from_elsewhere_and_no_inline_script(
    client_of: ClientOf, alice: User
) -> None:
    page = client_of(alice).get("/api/v1/docs")
    assert page.status_code == 200
    text = page.content.decode()
    assert "ninja/swagger-ui-bundle.js" in text
    for address in re.findall(r'(?:src|href)="([^"]+)"', text):
        assert address.startswith(("/", "#")), address
    inline = re.findall(r"<script(?![^>]*\b(?:src|application/json))[^>]*>", text)
    assert inline == []
    assert client_of(None).get("/api/v1/docs").status_code == 302


def test_an_address_that_leads_nowhere_is_a_problem(client_of: ClientOf, alice: User) -> None:
    for client in (client_of(alice), client_of(None)):
        for path in ("/api/v1/nothing", "/api/v1/recordings/a/b/c", "/api/v1/uploads/x"):
            response = client.post(path)
            assert response.status_code == 404
            assert response["Content-Type"] == "application/problem+json"


def test_callers_are_told_what_is_left_and_when_it_is_too_much(
    client_of: ClientOf, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limits, "person", lambda user: f"test.{user.pk}.{id(user)}")
    allowances = iter(
        rate_limits.Allowance(limit=2, remaining=left, reset_s=30, is_spent=is_spent)
        for left, is_spent in ((1, False), (0, False), (0, True))
    )
    monkeypatch.setattr(rate_limits, "take", lambda who, kind: next(allowances))
    client = client_of(alice)
    first = client.get("/api/v1/recordings")
    assert (first["RateLimit-Limit"], first["RateLimit-Remaining"]) == ("2", "1")
    assert first["RateLimit-Reset"] == "30"
    assert client.get("/api/v1/recordings").status_code == 200
    third = client.get("/api/v1/recordings")
    assert (third.status_code, third["Retry-After"]) == (429, "30")
    assert third.json()["is_retryable"] is True


def test_a_fault_is_a_problem_and_its_text_is_not_logged(
    client_of: ClientOf,
    alice: User,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the words that were said")

    monkeypatch.setattr("transcription.selectors.recordings_visible_to", fail)
    response = client_of(alice).get("/api/v1/recordings")
    assert (response.status_code, response.json()["code"]) == (500, "error")
    assert "request_failed" in caplog.text
    assert "words that were said" not in caplog.text


def test_a_cookie_alone_changes_nothing(client_of: ClientOf, alice: User) -> None:
    recording = make_recording(alice)
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    response = client.delete(f"/api/v1/recordings/{recording.id}")
    assert (response.status_code, response.json()["code"]) == (403, "forbidden")


def test_bodies_that_are_none_are_refused(client_of: ClientOf, alice: User) -> None:
    recording, client = make_recording(alice), client_of(alice)
    path = f"/api/v1/recordings/{recording.id}"
    for body in (b"{", b"\xff\xfe", b"[]", b""):
        assert client.patch(path, body, content_type="application/json").status_code == 400
    broken = b"--x\r\nContent-Disposition: form-data; name=file; filename=a\r\n\r\nabc"
    response = client.post("/api/v1/recordings", broken, content_type="multipart/form-data")
    assert response.status_code == 400


def test_a_file_is_taken_once_for_a_key(
    client_of: ClientOf, alice: User, sent: list[tuple[str, ...]]
) -> None:
    client, key = client_of(alice), {"Idempotency-Key": "morning"}

    def send(content: bytes) -> Any:
        file = SimpleUploadedFile("talk.wav", content)
        return client.post("/api/v1/recordings", {"file": file}, headers=key)

    first, again = send(b"RIFF1"), send(b"RIFF1")
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["id"] == again.json()["id"]
    assert send(b"RIFF2").status_code == 422
    assert Upload.objects.count() == 1


def test_what_was_refused_may_be_tried_again_with_the_same_key(
    client_of: ClientOf, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, key = client_of(alice), {"Idempotency-Key": "morning"}
    path = "/api/v1/live-sessions"

    def refuse(**_: object) -> None:
        raise NotFoundError

    with monkeypatch.context() as patched:
        patched.setattr("transcription.services.live_sessions.create_live_session", refuse)
        response = client.post(path, {}, content_type="application/json", headers=key)
        assert response.status_code == 404
    response = client.post(path, {}, content_type="application/json", headers=key)
    assert response.status_code == 201
    for bad in ("", "x" * 256, "tab\there", "a b"):
        response = client.post(
            path, {}, content_type="application/json", headers={"Idempotency-Key": bad}
        )
        assert response.status_code == 400
