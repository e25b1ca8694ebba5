"""A recording through the whole server: uploaded with a break, checked, transcribed, downloaded,
while the processes under it are killed."""

from __future__ import annotations

import json

from asr_engine.backends.scripted import encode_blocks, script, word_text
from tests.e2e.conftest import Server
from tests.fakes.audio import wav_bytes
from tests.fakes.tool import PIECE_BYTES, Tool
from tests.fakes.waiting import wait_until

WORDS = 3000


def test_an_upload_survives_a_break_and_the_death_of_each_process(server: Server) -> None:
    tool = Tool(server.base_url, server.manage("createtoken", server.email).strip())
    talk = wav_bytes(encode_blocks(script(WORDS, utterance_words=50)))
    assert len(talk) > 2 * PIECE_BYTES

    def break_once(offset: int) -> None:
        if offset == PIECE_BYTES:
            server.kill("web")
            wait_until(server.is_up, timeout_s=60, what="the web process is back")

    recording = tool.upload(talk, "Besprechung.wav", after_piece=break_once)
    server.kill("chores")
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
    server.wait_ready()
