"""What the tests of live captures share: a voice, a network that can be cut, the page's acts."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import soundfile
from playwright.sync_api import Page, expect

from asr_engine.audio import SAMPLE_RATE, FloatSamples, pcm16_to_float

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

NATIVE_RATE = 48_000
WORDS = re.compile(r"w(\d+)")


def write_microphone(path: Path, samples: FloatSamples) -> Path:
    """A WAV at a sound card's rate (band-limited, so that only our resampler can do harm)."""
    factor = NATIVE_RATE // SAMPLE_RATE
    spectrum = np.fft.rfft(samples)
    wide = np.zeros(len(samples) * factor // 2 + 1, dtype=complex)
    wide[: len(spectrum)] = spectrum
    loud = np.clip(np.fft.irfft(wide, len(samples) * factor) * factor, -1, 1)
    soundfile.write(path, loud, NATIVE_RATE, subtype="PCM_16")
    return path


class Wire:
    """A TCP proxy before the server that can be cut, as a network is."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._is_cut = self._are_sockets_cut = False
        self._open: set[socket.socket] = set()
        self._sockets: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._is_cut = True
        for end in list(self._open):
            self._close(end)

    def cut_sockets(self) -> None:
        """Cut the WebSockets alone: pages still come."""
        self._are_sockets_cut = True
        for end in list(self._sockets):
            self._close(end)

    def mend(self) -> None:
        self._is_cut = self._are_sockets_cut = False

    def close(self) -> None:
        self.cut()
        self._close(self._listener)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self._is_cut:
                near.close()
                continue
            far = socket.create_connection(("127.0.0.1", self._server_port))
            self._open |= {near, far}
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._copy, args=(source, target), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if b"upgrade: websocket" in data[:4096].lower() and data.startswith(b"GET "):
                    if self._are_sockets_cut:
                        break
                    self._sockets |= {source, target}
                target.sendall(data)
        self._close(source)
        self._close(target)

    def _close(self, end: socket.socket) -> None:
        self._open.discard(end)
        self._sockets.discard(end)
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


def start_captions(page: Page, title: str, speed: str = "") -> None:
    page.goto("/live/new/")
    page.get_by_label("Title").fill(title)
    if speed:
        page.locator("#id_mode_ms").select_option(speed)
    page.locator("#id_language").select_option("en")
    page.get_by_role("button", name="Start captions").click()
    expect(page.locator(".capture-state")).to_have_attribute("data-state", "live")


TAP = """(() => {
    const post = MessagePort.prototype.postMessage;
    window.tapped = [];
    MessagePort.prototype.postMessage = function (message, transfer) {
        if (message?.type !== "send" || !message.audioPort) {
            return post.call(this, message, transfer);
        }
        const { port1, port2 } = new MessageChannel();
        port2.onmessage = ({ data }) => {
            if (data.samples) window.tapped.push(...data.samples);
            post.call(message.audioPort, data, data.samples ? [data.samples.buffer] : []);
        };
        return post.call(this, { ...message, audioPort: port1 }, [port1]);
    };
})();"""


def tap_microphone(page: Page) -> None:
    """Keep in the page what the audio thread hands to the capture, for `tapped`.

    The fake device of a busy browser slips now and then: a word is cut in two before we have it.
    """
    page.add_init_script(TAP)


def tapped(page: Page) -> FloatSamples:
    """All samples since the page was loaded, float32 [n] at 16 kHz."""
    return pcm16_to_float(np.array(page.evaluate("window.tapped"), "<i2").tobytes())


def finals(page: Page) -> list[str]:
    return page.locator(".captions-list .caption-text").all_inner_texts()


def numbers(texts: list[str]) -> list[int]:
    return [int(number) for number in WORDS.findall(" ".join(texts))]


def stop_and_save(page: Page) -> str:
    """Press Stop; the id of the recording."""
    page.get_by_role("button", name="Stop").click()
    link = page.get_by_role("link", name="Open the recording")
    expect(link).to_be_visible(timeout=30_000)
    address = link.get_attribute("href")
    assert address is not None
    return address.strip("/").rsplit("/", maxsplit=1)[-1]


def stored_text(server: Server, recording: str) -> str:
    """The live transcript as it lies in the database."""
    rows = server.rows(
        "SELECT text FROM transcription_transcriptsegment WHERE revision_id IN"
        " (SELECT id FROM transcription_transcriptrevision"
        " WHERE recording_id = ? AND kind = 'live') ORDER BY \"index\"",
        UUID(recording).hex,
    )
    return " ".join(text for (text,) in rows)


def stored_mode_ms(server: Server, recording: str) -> int:
    return int(_of_session(server, recording, "mode_ms"))


def stored_language(server: Server, recording: str) -> str:
    return str(_of_session(server, recording, "language"))


def _of_session(server: Server, recording: str, column: str) -> Any:
    query = f"SELECT {column} FROM transcription_livesession WHERE recording_id = ?"  # noqa: S608  # ours
    ((value,),) = server.rows(query, UUID(recording).hex)
    return value
