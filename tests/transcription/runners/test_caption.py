"""The command-line microphone: what it counts, and what it keeps."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, cast

import pytest
import soundfile
from websockets.asyncio.client import ClientConnection

from asr_engine.backends import scripted
from asr_engine.errors import AudioError
from transcription.runners.caption import CaptionError, CaptionStream, PcmSource, decode_to


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
