"""The bridge for Asterisk's AudioSocket: frames, silences, hang-ups, and calls that go wrong."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.fakes.exchange import AUDIO, HANGUP, UUID, frame, kill
from transcription.runners import audiosocket
from transcription.runners.audiosocket import AudioSocketBridge, BridgeOptions, CallAudio
from transcription.runners.caption import CaptionError
from webapp.setup import free_port

CALL = uuid.UUID("8f1d9a44-7b0e-4f0a-9c6d-0a4f5f0f6a11")
SECOND = b"\x01\x00" * 8000


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(audiosocket, "time", clock)  # the event loop has its own
    return clock


async def rest_of(audio: CallAudio) -> bytes:
    audio.end()
    return b"".join([data async for data in audio.packets(1600)])


# What a call says --------------------------------------------------------------------------------


async def test_frames_become_packets_of_the_wanted_length(clock: Clock) -> None:
    audio = CallAudio(8000)
    clock.now_s += 1
    for _ in range(50):
        audio.feed(SECOND[:320])
    audio.end()
    pieces = [len(data) async for data in audio.packets(1600)]
    assert pieces == [3200] * 5


async def test_the_last_packet_is_what_is_left(clock: Clock) -> None:
    audio = CallAudio(8000)
    audio.feed(SECOND[:500])
    assert await rest_of(audio) == SECOND[:500]


async def test_a_time_without_frames_becomes_silence(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audiosocket, "FILL_AFTER_S", 0.01)
    audio = CallAudio(8000)
    audio.feed(SECOND)
    clock.now_s += 3
    packets = audio.packets(8000)
    assert await anext(packets) == SECOND
    assert await anext(packets) == bytes(16_000)
    audio.feed(SECOND)
    assert await anext(packets) == bytes(16_000)
    assert await anext(packets) == SECOND
    audio.end()
    assert [data async for data in packets] == []


async def test_frames_that_come_faster_than_time_are_bounded(clock: Clock) -> None:
    audio = CallAudio(8000)
    for _ in range(20):
        audio.feed(SECOND)
    kept = len(await rest_of(audio)) / len(SECOND)
    assert audiosocket.AHEAD_S <= kept <= audiosocket.AHEAD_S + 1


async def test_of_a_call_that_nobody_hears_the_last_minute_is_kept(clock: Clock) -> None:
    audio = CallAudio(8000)
    for _ in range(100):
        clock.now_s += 1
        audio.feed(SECOND)
    assert audio.begun_s == 100 + 40
    assert len(await rest_of(audio)) == audiosocket.KEPT_S * len(SECOND)


# Calls -------------------------------------------------------------------------------------------


class FakeStream:
    """The client of the socket: remembers what was spoken into it, or is refused."""

    made: asyncio.Queue[FakeStream]
    refusals: list[str]

    def __init__(self, url: str, token: str, **options: Any) -> None:
        self.url, self.token, self.options = url, token, options
        self.heard = bytearray()
        self.is_done = asyncio.Event()
        self.report = type("Report", (), {"problem_code": ""})()
        self.made.put_nowait(self)

    async def run(self, source: CallAudio) -> None:
        if self.refusals:
            self.report.problem_code = self.refusals.pop(0)
            raise CaptionError("No.")
        async for data in source.packets(160):
            self.heard += data
        self.is_done.set()


Streams = asyncio.Queue[FakeStream]


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> Streams:
    FakeStream.made, FakeStream.refusals = asyncio.Queue(), []
    monkeypatch.setattr(audiosocket, "CaptionStream", FakeStream)
    monkeypatch.setattr(audiosocket, "RETRY_S", 0.0)
    return FakeStream.made


@asynccontextmanager
async def bridge(**options: Any) -> AsyncIterator[int]:
    port, stopping = free_port(), asyncio.Event()
    running = AudioSocketBridge(BridgeOptions("ws://here/ws/v1/stream", "tr_secret", **options))
    task = asyncio.create_task(running.serve("127.0.0.1", port, stopping))
    try:
        async with asyncio.timeout(20):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0)
                else:
                    writer.close()
                    break
            yield port
    finally:
        stopping.set()
        await task


async def called(port: int, *frames: bytes) -> asyncio.StreamWriter:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"".join(frames))
    await writer.drain()
    return writer


async def test_a_call_is_spoken_into_a_session_under_its_id(streams: Streams) -> None:
    async with bridge(language="de", mode_ms=560) as port:
        writer = await called(
            port, frame(UUID, CALL.bytes), frame(AUDIO, SECOND[:320]), frame(HANGUP)
        )
        stream = await streams.get()
        await stream.is_done.wait()
        writer.close()
    assert bytes(stream.heard) == SECOND[:320]
    assert (stream.token, stream.url) == ("tr_secret", "ws://here/ws/v1/stream")
    options = stream.options
    assert (options["reference"], options["sample_rate"]) == (str(CALL), 8000)
    assert (options["language"], options["mode_ms"]) == ("de", 560)
    assert options["title"].startswith("Call, ")


async def test_wide_band_is_heard_at_its_own_rate(streams: Streams) -> None:
    async with bridge() as port:
        writer = await called(
            port, frame(UUID, CALL.bytes), frame(0x12, SECOND[:640]), frame(HANGUP)
        )
        stream = await streams.get()
        await stream.is_done.wait()
        writer.close()
    assert stream.options["sample_rate"] == 16_000


async def test_keys_that_are_pressed_are_no_sound(streams: Streams) -> None:
    async with bridge() as port:
        writer = await called(
            port,
            frame(UUID, CALL.bytes),
            frame(0x03, b"5"),
            frame(AUDIO, SECOND[:320]),
            frame(0x03, b"6"),
            frame(HANGUP),
        )
        stream = await streams.get()
        await stream.is_done.wait()
        writer.close()
    assert bytes(stream.heard) == SECOND[:320]


async def test_one_call_that_is_killed_leaves_the_others(streams: Streams) -> None:
    async with bridge() as port:
        killed = await called(port, frame(UUID, CALL.bytes), frame(AUDIO, SECOND[:320]))
        first = await streams.get()
        other = await called(port, frame(UUID, uuid.uuid4().bytes), frame(AUDIO, SECOND[:320]))
        second = await streams.get()
        kill(killed)
        await first.is_done.wait()
        assert not second.is_done.is_set()
        other.write(frame(AUDIO, SECOND[320:640]) + frame(HANGUP))
        await second.is_done.wait()
        other.close()
    assert bytes(first.heard) == SECOND[:320]
    assert bytes(second.heard) == SECOND[:640]


@pytest.mark.parametrize(
    "frames",
    [
        [frame(AUDIO, SECOND[:320])],
        [frame(UUID, b"short")],
        [b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"],
        [frame(UUID, CALL.bytes), frame(HANGUP)],
        [b"\x01"],
    ],
)
async def test_what_is_no_call_makes_no_session(streams: Streams, frames: list[bytes]) -> None:
    async with bridge() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"".join(frames))
        writer.write_eof()
        async with asyncio.timeout(20):
            assert await reader.read() == b""
        writer.close()
    assert streams.empty()


async def test_calls_beyond_the_limit_are_closed_at_once(streams: Streams) -> None:
    async with bridge(most_calls=1) as port:
        held = await called(port, frame(UUID, CALL.bytes), frame(AUDIO, SECOND[:320]))
        await streams.get()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(20):
            assert await reader.read() == b""
        writer.close()
        held.close()
    assert streams.empty()


async def test_a_call_without_a_place_asks_again_and_loses_nothing(
    streams: Streams,
) -> None:
    FakeStream.refusals = ["no_free_slot", "unreachable"]
    async with bridge() as port:
        writer = await called(port, frame(UUID, CALL.bytes), frame(AUDIO, SECOND[:320]))
        for _ in range(3):
            stream = await streams.get()
        writer.write(frame(HANGUP))
        await stream.is_done.wait()
        writer.close()
    assert bytes(stream.heard) == SECOND[:320]


async def test_the_end_of_the_bridge_is_the_end_of_its_calls(streams: Streams) -> None:
    async with bridge() as port:
        writer = await called(port, frame(UUID, CALL.bytes), frame(AUDIO, SECOND[:320]))
        stream = await streams.get()
    assert stream.is_done.is_set()
    assert bytes(stream.heard) == SECOND[:320]
    writer.close()
