"""The command-line microphone: what it counts, and what it keeps."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, cast

import pytest
import soundfile
from django.core.management import CommandError, call_command
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from asr_engine.backends import scripted
from asr_engine.errors import AudioError
from transcription.runners.caption import (
    CaptionError,
    CaptionStream,
    PcmSource,
    decode_to,
    stream_address,
)
from webapp.setup import free_port


async def test_source_yields_every_sample_once_and_the_rest_last() -> None:
    data = bytes(range(200)) * 10 + b"\0"  # half a sample at the end
    source = PcmSource(io.BytesIO(data), is_live=False)
    packets = [packet async for packet in source.packets(300)]
    assert [len(packet) for packet in packets] == [600, 600, 600, 200]
    assert b"".join(packets) == data[:2000]


async def test_file_is_decoded_for_all_streams(tmp_path: Path) -> None:
    path = tmp_path / "speech.flac"
    samples = scripted.encode_blocks(scripted.script(4))
    soundfile.write(path, samples, 16000, subtype="PCM_16")
    file = io.BytesIO()
    decode_to(path, file)
    source = PcmSource(file, is_live=False)
    for _ in range(2):
        packets = [packet async for packet in source.packets(1600)]
        assert sum(map(len, packets)) == 2 * len(samples)


def test_file_that_is_no_audio_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "speech.wav"
    path.write_text("no audio")
    with pytest.raises(AudioError):
        decode_to(path, io.BytesIO())


def test_refusal_that_may_pass_is_tried_again_once_a_session_runs() -> None:
    stream = CaptionStream("ws://localhost/ws/v1/stream", "token")
    with pytest.raises(CaptionError):
        stream._refused({"code": "no_engine", "reason": "No engine."})
    stream.report.session = "session"
    stream._refused({"code": "no_engine", "reason": "No engine."})
    with pytest.raises(CaptionError):
        stream._refused({"code": "not_found", "reason": "Nothing here."})


async def test_a_head_beyond_what_was_heard_is_asked_about_once() -> None:
    """Who listens while the broker is away hears nothing, and is told of it by the next head."""
    stream = CaptionStream("ws://localhost", "token")
    asked: list[dict[str, Any]] = []

    class Socket:
        async def send(self, text: str) -> None:
            asked.append(json.loads(text))

    socket = cast("ClientConnection", Socket())
    stream.report.heard.seqs = {1, 2, 4}
    await stream._fetch_missed(socket, 4)
    await stream._fetch_missed(socket, 4)
    stream.report.heard.seqs |= {3, 5}
    await stream._fetch_missed(socket, 5)
    assert asked == [{"type": "refetch", "after_seq": 2}]


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("ws://localhost:8000", "ws://localhost:8000/ws/v1/stream"),
        ("wss://captions.example/", "wss://captions.example/ws/v1/stream"),
        ("ws://[::1]:8000", "ws://[::1]:8000/ws/v1/stream"),
        ("wss://proxy.example/captions/stream", "wss://proxy.example/captions/stream"),
    ],
)
def test_a_server_without_a_path_has_the_product_s_own(given: str, address: str) -> None:
    assert stream_address(given) == address


@pytest.mark.parametrize("url", ["localhost:8000", "http://localhost", "ws://", "ws://host:port"])
def test_what_is_no_address_of_a_stream_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(CommandError, match=r"must be like wss://HOST:PORT"):
        call_command("caption", "speech.wav", "--url", url, "--token", "token")


async def test_a_refused_connection_names_the_server_and_its_status() -> None:
    def refuse(socket: ServerConnection, request: Request) -> Response:
        return socket.respond(403, "")

    async def answer(socket: ServerConnection) -> None:
        raise AssertionError("nobody comes so far")

    async with serve(answer, "127.0.0.1", 0, process_request=refuse) as server:
        port = server.sockets[0].getsockname()[1]
        stream = CaptionStream(f"ws://127.0.0.1:{port}/ws/v1/stream", "token")
        with pytest.raises(CaptionError) as refusal:
            await stream.run(PcmSource(io.BytesIO(), is_live=False))
    sentence = f"127.0.0.1:{port} refused the connection to /ws/v1/stream with HTTP status 403."
    assert (str(refusal.value), stream.report.problem) == (sentence, sentence)
    assert stream.report.problem_code == "http_403"


def test_a_server_that_is_not_there_fails_the_command(tmp_path: Path) -> None:
    path, port = tmp_path / "speech.wav", free_port()
    soundfile.write(path, scripted.encode_blocks(scripted.script(2)), 16000, subtype="PCM_16")
    with pytest.raises(CommandError, match=rf"127\.0\.0\.1:{port} cannot be reached"):
        call_command("caption", str(path), "--url", f"ws://127.0.0.1:{port}", "--token", "token")
