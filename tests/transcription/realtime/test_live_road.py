"""The whole live road: real sockets, a real engine on the scripted model, a real recorder.

The scripted model reads its words out of the samples, so audio that is lost, doubled or reordered
anywhere shows as wrong text.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import soundfile
from asgiref.sync import sync_to_async
from django.db import connection
from redis import Redis

from asr_engine.audio import float_to_pcm16
from asr_engine.backends import scripted
from asr_engine.protocol import ENGINES_KEY, RECORDER_LEADER_KEY, engine_key, session_key
from tests.fakes.live import Page, hello, log_in, make_session
from tests.fakes.waiting import wait_until
from transcription.models import LiveSession, Recording, RevisionKind
from transcription.realtime import capture
from webapp.accounts.models import User
from webapp.config import site_settings

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parents[3]
PACKET_SAMPLES = 2560


class Processes:
    """An engine and recorders of this test."""

    def __init__(self) -> None:
        self.site = site_settings()
        self.broker = Redis.from_url(self.site.broker_url)
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start_engine(self) -> None:
        self._start("engine", "-m", "asr_engine.worker")

    def start_recorder(self) -> None:
        self._start("recorder", "manage.py", "record_live")

    def engine_is_there(self) -> bool:
        return bool(self.broker.exists(engine_key("road")))

    def recorder_is_there(self) -> bool:
        return bool(self.broker.exists(RECORDER_LEADER_KEY))

    def _start(self, name: str, *arguments: str) -> None:
        environment = {
            **os.environ,
            "ASR_NAME": "road",
            "ASR_LIVE_BACKEND": "scripted",
            "ASR_BROKER_URL": self.site.broker_url,
            "ASR_AUDIO_URL": self.site.audio_url,
            "TRANSCRIBE_DATABASE_URL": f"sqlite:///{connection.settings_dict['NAME']}",
        }
        self._running[name] = subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
        )

    def kill(self, name: str) -> None:
        process = self._running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=20)

    def end(self) -> None:
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            process.wait(timeout=30)
        self.broker.close()


@pytest.fixture
def processes(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    if connection.vendor != "sqlite":
        pytest.skip("the processes of this test share a database file")
    # A restarted engine on a busy machine may need longer than a person's patience.
    monkeypatch.setattr(capture, "CLOSED_TIMEOUT_S", 60.0)
    processes = Processes()
    processes.broker.flushdb()
    processes.broker.delete(ENGINES_KEY)
    processes.start_engine()
    processes.start_recorder()
    try:
        wait_until(
            lambda: processes.engine_is_there() and processes.recorder_is_there(),
            timeout_s=60,
            what="engine and recorder are there",
        )
        yield processes
    finally:
        processes.end()


@pytest.fixture
def session(alice: User) -> LiveSession:
    return make_session(alice)


class Speaker:
    """A page that speaks a script, keeps the finals that it is shown, and can come back."""

    def __init__(self, session: LiveSession, person: User, words: int) -> None:
        self.blocks = scripted.script(words)
        self.pcm = float_to_pcm16(scripted.encode_blocks(self.blocks))
        self.shown: dict[int, str] = {}
        self._session, self._person = session, person

    @property
    def samples(self) -> int:
        return len(self.pcm) // 2

    async def come(self) -> dict[str, Any]:
        client = await sync_to_async(log_in)(self._person)
        self.page = Page(f"/ws/v1/live/{self._session.id}/capture", client)
        assert await self.page.connect()
        await self.page.say(**hello())
        ready: dict[str, Any] = await self.page.hear("ready")
        return ready

    async def speak(
        self, first_sample: int, end_sample: int, packet_samples: int = PACKET_SAMPLES
    ) -> None:
        for start in range(first_sample, end_sample, packet_samples):
            end = min(start + packet_samples, end_sample)
            await self.page.speak(start, self.pcm[2 * start : 2 * end])

    async def hear_until(self, is_done: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            event: dict[str, Any] = await self.page.socket.receive_json_from(timeout=60)
            if event["type"] == "final":
                self.shown[event["utterance"]] = event["text"]
            if is_done(event):
                return event

    async def stop(self) -> dict[str, Any]:
        await self.page.say(type="stop", sample=self.samples)
        closed = await self.hear_until(lambda event: event["type"] == "closed")
        await self.page.leave()
        return closed

    def shown_text(self) -> str:
        return " ".join(self.shown[number] for number in sorted(self.shown))


def check_recording(speaker: Speaker, closed: dict[str, Any]) -> None:
    """Saved text equals shown text equals what was said; the file holds every sample."""
    recording = Recording.objects.get(id=closed["recording"])
    revision = recording.revisions.get(kind=RevisionKind.LIVE)
    saved = " ".join(revision.segments.order_by("index").values_list("text", flat=True))
    assert saved == scripted.script_text(speaker.blocks)
    assert speaker.shown_text() == saved
    path = site_settings().media_dir / "recordings" / str(recording.id) / "source.bin"
    samples, _ = soundfile.read(path, dtype="int16")
    assert samples.astype("<i2").tobytes() == speaker.pcm
    assert recording.jobs.count() == 1


async def test_last_words_are_flushed_and_saved_text_equals_shown_text(
    processes: Processes, session: LiveSession, alice: User
) -> None:
    """The page comes back in the middle and sends again what was not acknowledged."""
    speaker = Speaker(session, alice, words=20)
    speaker.pcm = speaker.pcm[: -2 * 16000]  # stop comes right after the last word
    await speaker.come()
    await speaker.speak(0, 30000)
    await speaker.hear_until(lambda event: event["type"] == "ack" and event["sample"] >= 10000)
    await speaker.page.leave()
    ready = await speaker.come()
    assert ready["sample"] >= 10000
    await speaker.speak(ready["sample"] - 4000, speaker.samples)
    check = sync_to_async(check_recording)
    await check(speaker, await speaker.stop())


async def test_kill_of_recorder_and_engine_loses_and_doubles_nothing(
    processes: Processes, session: LiveSession, alice: User
) -> None:
    speaker = Speaker(session, alice, words=40)
    await speaker.come()
    third = speaker.samples // 3
    await speaker.speak(0, third)
    await speaker.hear_until(lambda event: event["type"] == "final")
    processes.kill("recorder")
    await speaker.speak(third, 2 * third)
    processes.start_recorder()
    await speaker.hear_until(lambda event: event["type"] == "ack" and event["sample"] >= 2 * third)
    processes.kill("engine")
    await speaker.speak(2 * third, speaker.samples)
    processes.start_engine()
    closed = await speaker.stop()
    await sync_to_async(check_recording)(speaker, closed)


async def test_modes_changed_in_the_middle_of_words_lose_and_double_nothing(
    processes: Processes, session: LiveSession, alice: User
) -> None:
    """Packets follow the mode, and the changes fall anywhere in them and in the model's chunks."""
    speaker = Speaker(session, alice, words=48)
    ready = await speaker.come()
    modes_ms = [choice["mode_ms"] for choice in ready["modes"]]
    assert len(modes_ms) > 2
    changes = [*modes_ms, *reversed(modes_ms), *modes_ms[::2]]
    part = speaker.samples // (len(changes) + 1)
    await speaker.speak(0, part + 77)
    for number, mode_ms in enumerate(changes, start=1):
        await speaker.page.say(type="set_mode", mode_ms=mode_ms)
        event = await speaker.hear_until(lambda event: event["type"] == "mode")
        assert event["mode_ms"] == mode_ms
        start = number * part + 77
        end = speaker.samples if number == len(changes) else start + part
        await speaker.speak(start, end, event["packet_ms"] * 16)
    closed = await speaker.stop()
    await session.arefresh_from_db()
    assert session.mode_ms == changes[-1]
    await sync_to_async(check_recording)(speaker, closed)


async def test_mode_chosen_before_the_engine_was_killed_is_its_successor_s(
    processes: Processes, session: LiveSession, alice: User
) -> None:
    speaker = Speaker(session, alice, words=24)
    await speaker.come()
    half = speaker.samples // 2
    await speaker.page.say(type="set_mode", mode_ms=560)
    await speaker.hear_until(lambda event: event["type"] == "mode")
    await speaker.speak(0, half)
    await speaker.hear_until(lambda event: event["type"] == "final")
    processes.kill("engine")
    await speaker.speak(half, speaker.samples, 3200)
    processes.start_engine()
    await speaker.hear_until(lambda event: "w23" in event.get("text", ""))
    epoch, mode_ms = processes.broker.hmget(session_key(str(session.id)), ["epoch", "mode_ms"])
    assert (epoch, mode_ms) == (b"2", b"560")
    closed = await speaker.stop()
    await sync_to_async(check_recording)(speaker, closed)
