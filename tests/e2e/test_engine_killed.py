"""kill -9 of the engine in the middle of a live session of a whole server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import soundfile

from asr_engine.audio import SAMPLE_RATE
from asr_engine.backends import scripted
from tests.e2e.conftest import Server
from tests.fakes.waiting import wait_until


def test_a_killed_engine_costs_the_captions_no_word(server: Server, tmp_path: Path) -> None:
    """Its restart takes the session over; the one who speaks does not notice."""
    blocks = scripted.script(60)
    path = tmp_path / "speech.wav"
    soundfile.write(path, scripted.encode_blocks(blocks), SAMPLE_RATE, subtype="PCM_16")

    def count_logged(event: str) -> int:
        return server.log_path.read_text(errors="replace").count(event)

    opened = count_logged("stream_opened")
    taken_over = count_logged("session_taken_over")
    with ThreadPoolExecutor(1) as pool:
        captions = pool.submit(server.manage, "caption", str(path))
        wait_until(
            lambda: count_logged("stream_opened") > opened, timeout_s=60, what="a stream opens"
        )
        server.kill("engine")
        wait_until(
            lambda: count_logged("session_taken_over") > taken_over,
            timeout_s=60,
            what="it is taken over",
        )
        printed = captions.result(timeout=120)
    said = [word for word in printed.split() if word[:1] == "w" and word[1:].isdigit()]
    assert said == scripted.script_text(blocks).split()
