"""One run through the whole server, after which its logs are searched for what was said, how things
were named, and every key that was used; and its files for the keys, of which only hashes are kept.
"""

from __future__ import annotations

import http.cookiejar
import json
import re
import secrets
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field

import pytest
from websockets.sync.client import connect

from asr_engine.audio import float_to_pcm16
from asr_engine.backends.scripted import encode_blocks, script, word_text
from asr_engine.protocol import Packet, pack_packet
from tests.e2e.conftest import Server
from tests.fakes.audio import wav_bytes
from tests.fakes.tool import Tool
from tests.fakes.waiting import wait_until

FIRST_UPLOADED, FIRST_SPOKEN, WORDS = 45_000, 52_000, 16
PACKET_SAMPLES = 16_000 // 5
PATIENCE_S = 120
KEPT_WHERE = ("database.sqlite3", "media", "models", "broker", "audio")
"""Of the data directory, what is no log: here words and names belong."""
HOLDS_SECRETS = ("settings.env", "valkey.conf")


class Visitor:
    """A browser without script."""

    def __init__(self, server: Server) -> None:
        self._base_url = server.base_url
        self._jar = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._jar))

    def get(self, address: str) -> tuple[int, str]:
        return self._open(address, None)

    def post(self, address: str, **form: str) -> tuple[int, str]:
        token = next((each.value for each in self._jar if each.name == "csrftoken"), "") or ""
        body = urllib.parse.urlencode({**form, "csrfmiddlewaretoken": token}).encode()
        return self._open(address, body)

    def log_in(self, email: str, password: str) -> int:
        self.get("/accounts/login/")
        return self.post("/accounts/login/", login=email, password=password)[0]

    def _open(self, address: str, body: bytes | None) -> tuple[int, str]:
        url = urllib.parse.urljoin(self._base_url, address)
        request = urllib.request.Request(url, body, {"Referer": self._base_url})  # noqa: S310
        try:
            with self._opener.open(request, timeout=30) as response:
                return response.status, response.read().decode(errors="replace")
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read().decode(errors="replace")


@dataclass
class Said:
    """What went into the server: `words` and `names` belong to people, `keys` to nobody else."""

    words: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)

    def name(self, what: str) -> str:
        self.names.add(name := f"{what}-{secrets.token_hex(6)}")
        return name

    def key(self, what: str) -> str:
        self.keys.add(what)
        return what


@pytest.fixture(scope="module")
def said(server: Server) -> Said:
    """After everything was said and done."""
    said = Said()
    said.words = {
        word_text(first + number)
        for first in (FIRST_UPLOADED, FIRST_SPOKEN)
        for number in range(WORDS)
    }
    said.key(server.password)
    token = said.key(server.manage("createtoken", server.email, "--name", "tool").strip())
    recording = _upload(server, token, said)
    session = _speak(server, token, said)
    _visit(server, recording, session, said)
    _fail(server, said)
    return said


def _upload(server: Server, token: str, said: Said) -> str:
    """A recording, read once it is transcribed. Returns its page's path."""
    tool = Tool(server.base_url, token)
    talk = wav_bytes(encode_blocks(script(WORDS, first=FIRST_UPLOADED)))
    recording = tool.upload(talk, f"{said.name('Kündigung')}.wav")
    last_word = word_text(FIRST_UPLOADED + WORDS - 1).encode()
    wait_until(
        lambda: last_word in tool.ask("GET", f"{recording}/export.txt").body,
        timeout_s=PATIENCE_S,
        what="the transcript is complete",
    )
    return recording


def _speak(server: Server, token: str, said: Said) -> str:
    """A live session by the tools' socket, ended. Returns its id."""
    pcm = float_to_pcm16(encode_blocks(script(WORDS, first=FIRST_SPOKEN)))
    hello = {
        "type": "hello",
        "version": 1,
        "capture_id": secrets.token_hex(8),
        "sample_rate": 16_000,
        "encoding": "pcm16",
        "language": "en",
        "mode_ms": 0,
        "take_over": False,
        "token": token,
        "title": said.name("Aufsichtsrat"),
    }
    with connect(f"ws://localhost:{server.port}/ws/v1/stream") as socket:
        socket.send(json.dumps(hello))
        session = ""
        while not session:
            event = json.loads(socket.recv(timeout=PATIENCE_S))
            assert event["type"] != "error", event
            session = event["session"] if event["type"] == "ready" else ""
        for number, start in enumerate(range(0, len(pcm) // 2, PACKET_SAMPLES)):
            piece = pcm[start * 2 : (start + PACKET_SAMPLES) * 2]
            socket.send(pack_packet(Packet(number, start, piece)))
        socket.send(json.dumps({"type": "stop", "sample": len(pcm) // 2}))
        finals = ""
        while True:
            event = json.loads(socket.recv(timeout=PATIENCE_S))
            finals += event.get("text", "") if event["type"] == "final" else ""
            if event["type"] == "closed":
                break
    assert word_text(FIRST_SPOKEN + WORDS - 1) in finals
    return session


def _visit(server: Server, recording: str, session: str, said: Said) -> None:
    """The pages of an owner, and those behind links."""
    owner = Visitor(server)
    assert owner.log_in(server.email, server.password) == 200
    assert owner.get(f"/?q={said.name('gesucht')}")[0] == 200
    assert owner.post(f"{recording}/rename/", title=said.name("Betriebsrat"))[0] == 200
    stranger = Visitor(server)
    for shared, prefix in ((recording, "r"), (f"/live/{session}", "s")):
        status, page = owner.post(f"{shared}/share/", hours="24")
        found = re.search(rf"/{prefix}/([\w-]{{20,}})/", page)
        assert (status, found is not None) == (200, True)
        assert found is not None
        address = f"/{prefix}/{said.key(found[1])}/"
        assert stranger.get(address)[0] == 200
        assert stranger.get(f"{address}nowhere/")[0] == 404
        assert stranger.get(f"/{prefix}/{said.key(secrets.token_urlsafe(16))}/")[0] == 404
    link = server.manage("invite", f"{said.name('guest')}@example.org").strip()
    said.key(link.rstrip("/").rpartition("/")[2].partition("-")[2])
    assert stranger.get(link)[0] == 200


def _fail(server: Server, said: Said) -> None:
    """What is refused is logged too."""
    wrong = Tool(server.base_url, said.key(f"tr_{secrets.token_urlsafe(32)}"))
    assert wrong.ask("POST", "/api/v1/uploads/", b"").status == 401
    visitor = Visitor(server)
    for email in (server.email, f"{said.name('unknown')}@example.org"):
        assert visitor.log_in(email, said.key(secrets.token_urlsafe(12))) == 200
    with connect(f"ws://localhost:{server.port}/ws/v1/stream") as socket:
        socket.send(json.dumps({"type": "hello", "token": said.key(secrets.token_hex(20))}))
        while json.loads(socket.recv(timeout=PATIENCE_S))["type"] != "error":
            pass
    assert wrong.ask("GET", f"/healthz?{said.name('query')}").status == 200


def test_logs_hold_no_word_no_name_and_no_key(server: Server, said: Said) -> None:
    logs = [server.log_path]
    for path in server.data_dir.rglob("*"):
        place = path.relative_to(server.data_dir).parts[0]
        if path.is_file() and not place.startswith(KEPT_WHERE) and path.name not in HOLDS_SECRETS:
            logs.append(path)
    text = "\n".join(path.read_bytes().decode(errors="replace") for path in logs)
    assert "http_request_answered" in text
    assert "share_link_opened" in text
    for what in (said.words, said.names, said.keys):
        assert what
        assert {each for each in what if each in text} == set()


def test_files_hold_no_key(server: Server, said: Said) -> None:
    """Database, journals and the broker's file among them: they have hashes."""
    keys = {key: key.encode() for key in said.keys}
    leaks = {
        (path.name, key[:6])
        for path in server.data_dir.rglob("*")
        if path.is_file() and path.name not in HOLDS_SECRETS
        for content in [path.read_bytes()]
        for key, secret in keys.items()
        if secret in content
    }
    assert leaks == set()
