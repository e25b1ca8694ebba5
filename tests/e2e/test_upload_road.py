"""A recording through the whole server: uploaded with a break, checked, transcribed, downloaded,
while the processes under it are killed."""

from __future__ import annotations

import base64
import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from asr_engine.backends.scripted import encode_blocks, script, word_text
from tests.e2e.conftest import Server, make_server, wait_until
from tests.fakes.audio import wav_bytes

WORDS = 3000
PIECE_BYTES = 4 * 1024**2


@dataclass
class Answer:
    status: int
    headers: Any
    body: bytes


@dataclass
class Tool:
    """A program with a token, as `curl` would be."""

    server: Server
    token: str

    def ask(self, method: str, address: str, body: bytes | None = None, **headers: str) -> Answer:
        if not address.startswith("http"):
            address = self.server.base_url + address
        request = urllib.request.Request(  # noqa: S310  # http, ours
            address,
            data=body,
            method=method,
            headers={
                "Authorization": f"Bearer {self.token}",
                **{name.replace("_", "-"): value for name, value in headers.items()},
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
                return Answer(response.status, response.headers, response.read())
        except urllib.error.HTTPError as refusal:
            with refusal:
                return Answer(refusal.code, refusal.headers, refusal.read())


@pytest.fixture
def road_server() -> Iterator[Server]:
    server = make_server()
    server.start()
    yield server
    server.stop()
    shutil.rmtree(server.data_dir, ignore_errors=True)


def test_an_upload_survives_a_break_and_the_death_of_each_process(road_server: Server) -> None:
    server = road_server
    token = server.manage("createtoken", server.email).strip()
    tool = Tool(server, token)
    talk = wav_bytes(encode_blocks(script(WORDS, utterance_words=50)))
    name = base64.b64encode(b"Besprechung.wav").decode()
    made = tool.ask(
        "POST",
        "/api/v1/uploads/",
        b"",
        Tus_Resumable="1.0.0",
        Upload_Length=str(len(talk)),
        Upload_Metadata=f"filename {name}",
    )
    assert made.status == 201
    address = made.headers["Location"]
    offset = 0
    while offset < len(talk):
        piece = talk[offset : offset + PIECE_BYTES]
        sent = tool.ask(
            "PATCH",
            address,
            piece,
            Tus_Resumable="1.0.0",
            Upload_Offset=str(offset),
            Content_Type="application/offset+octet-stream",
        )
        assert sent.status == 204
        offset = int(sent.headers["Upload-Offset"])
        if offset == PIECE_BYTES:
            server.kill("web")
            wait_until(server.is_up, timeout_s=60, what="the web process is back")
            asked = tool.ask("HEAD", address, Tus_Resumable="1.0.0")
            assert asked.headers["Upload-Offset"] == str(offset)
    server.kill("chores")
    recording = f"/recordings/{address.rsplit('/', 1)[1]}"
    wait_until(
        lambda: tool.ask("HEAD", f"{recording}/media").status == 200,
        timeout_s=120,
        what="the check is done",
    )
    server.kill("jobs")

    def words() -> list[str]:
        answer = tool.ask("GET", f"{recording}/export.json")
        return str(json.loads(answer.body)["text"]).split()

    expected = [word_text(number) for number in range(WORDS)]
    wait_until(lambda: words() == expected, timeout_s=120, what="the transcript is complete")
    part = tool.ask("GET", f"{recording}/media", Range="bytes=100-199")
    assert (part.status, len(part.body)) == (206, 100)
    assert tool.ask("HEAD", f"{recording}/media", Authorization="").status == 401
