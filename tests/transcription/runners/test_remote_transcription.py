"""A client of the public REST API: what it sends, and what it does when the server is away."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from django.core.wsgi import get_wsgi_application

from asr_engine.backends.scripted import encode_blocks, script, script_text
from tests.fakes.audio import wav_bytes
from tests.fakes.road import Road, open_road
from transcription.models import Recording
from transcription.runners import remote_transcription
from transcription.runners.remote_transcription import RemoteError, RemoteServer
from webapp.accounts.models import ApiToken, Scope, User

BLOCKS = script(30)
Answer = Callable[[httpx.Request], httpx.Response]
ID = "6d7d8f2e-3c0f-4d57-9d0b-6d2f0a4f1b1e"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_transcription, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(remote_transcription, "RETRY_EVERY_S", 0.0)


def reach(monkeypatch: pytest.MonkeyPatch, transport: httpx.BaseTransport) -> None:
    client = functools.partial(httpx.Client, transport=transport)
    monkeypatch.setattr(remote_transcription.httpx, "Client", client)


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    path = tmp_path / "Besprechung „Mai“.wav"
    path.write_bytes(wav_bytes(encode_blocks(BLOCKS)))
    return path


class Site:
    """This site behind a line that may be cut: `faults` are raised before a request is answered,
    or after it."""

    def __init__(self) -> None:
        self._site = httpx.WSGITransport(app=get_wsgi_application())
        self.asked: list[str] = []
        self.faults: dict[int, str] = {}

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.method)
        fault = self.faults.get(len(self.asked), "")
        if fault == "before":
            raise httpx.ConnectError("away")
        request.read()
        answer = self._site.handle_request(request)
        answer.read()
        if fault == "after":
            raise httpx.ReadError("cut")
        return answer


@pytest.fixture
def site(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    site = Site()
    road: Road
    reach(monkeypatch, httpx.MockTransport(site.answer))
    with open_road(monkeypatch) as road:
        assert road.is_open
        yield site


def server_of(owner: User, heard: list[str] | None = None) -> RemoteServer:
    scopes = [Scope.RECORDINGS_READ, Scope.RECORDINGS_WRITE]
    _, secret = ApiToken.issue(user=owner, name="transcribe", scopes=scopes)
    told = [] if heard is None else heard
    return RemoteServer(
        "http://localhost", secret, progress=lambda stage, share: told.append(stage)
    )


def test_a_recording_is_uploaded_waited_for_and_fetched(
    site: Site, alice: User, talk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_transcription, "PIECE_BYTES", 50_000)
    heard: list[str] = []
    with server_of(alice, heard) as server:
        text = server.transcribe(talk, extension="txt", language="en")
    assert " ".join(part for part in text.split() if part.startswith("w")) == script_text(BLOCKS)
    assert heard[0] == "uploading"
    assert "checking" in heard
    recording = Recording.objects.get()
    assert (recording.owner, recording.display_name) == (alice, talk.name)
    assert recording.requested_language == "en"
    assert site.asked.count("PATCH") == -(-talk.stat().st_size // 50_000)


def test_a_cut_line_loses_and_doubles_nothing(
    site: Site, alice: User, talk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the piece had arrived or not, the server says where to go on."""
    monkeypatch.setattr(remote_transcription, "PIECE_BYTES", 50_000)
    site.faults = {1: "before", 3: "before", 4: "before", 6: "after"}
    with server_of(alice) as server:
        text = server.transcribe(talk, extension="txt", is_draft_only=True)
    assert " ".join(part for part in text.split() if part.startswith("w")) == script_text(BLOCKS)
    assert Recording.objects.get().source_path.read_bytes() == talk.read_bytes()


def test_a_refused_recording_is_a_sentence(site: Site, alice: User, tmp_path: Path) -> None:
    notes = tmp_path / "notes.wav"
    notes.write_text("not audio " * 100)
    with server_of(alice) as server, pytest.raises(RemoteError, match="not an audio or video"):
        server.transcribe(notes, extension="txt")


def test_a_wrong_token_is_a_sentence(site: Site, talk: Path) -> None:
    server = RemoteServer("http://localhost", "tr_wrong", progress=lambda *_: None)
    with server, pytest.raises(RemoteError, match="valid token"):
        server.transcribe(talk, extension="txt")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(502, text="<h1>Bad Gateway</h1>"), "HTTP status 502"),
        (httpx.Response(418, text="teapot"), "HTTP status 418"),
        (None, r"cannot be reached \(ConnectError\)"),
    ],
)
def test_a_server_that_is_away_is_given_up_with_a_sentence(
    answer: httpx.Response | None, words: str, talk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reply(request: httpx.Request) -> httpx.Response:
        if answer is None:
            raise httpx.ConnectError("away")
        return answer

    reach(monkeypatch, httpx.MockTransport(reply))
    monkeypatch.setattr(remote_transcription, "GIVE_UP_S", -1.0)
    server = RemoteServer("https://captions.example", "tr_x", progress=lambda *_: None)
    with server, pytest.raises(RemoteError, match=words):
        server.transcribe(talk, extension="txt")


def test_pieces_that_never_arrive_are_given_up(talk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reply(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return httpx.Response(201, headers={"Location": f"https://inside/api/v1/uploads/{ID}"})
        if request.method == "PATCH":
            raise httpx.WriteError("cut")
        return httpx.Response(200, headers={"Upload-Offset": "0"})

    reach(monkeypatch, httpx.MockTransport(reply))
    monkeypatch.setattr(remote_transcription, "GIVE_UP_S", 0.05)
    server = RemoteServer("https://captions.example", "tr_x", progress=lambda *_: None)
    with server, pytest.raises(RemoteError, match="cannot be reached"):
        server.transcribe(talk, extension="txt")


@pytest.mark.parametrize("url", ["captions.example", "wss://captions.example", "https://"])
def test_what_is_no_address_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(RemoteError, match=r"must be like https://HOST:PORT"):
        RemoteServer(url, "tr_x", progress=lambda *_: None)
