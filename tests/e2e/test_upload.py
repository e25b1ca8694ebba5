"""A recording chosen on the page becomes its transcript: the whole road, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
import soundfile
from playwright.sync_api import Page, expect

from asr_engine.audio import SAMPLE_RATE
from asr_engine.backends.scripted import encode_blocks, script, script_text
from tests.e2e.conftest import Server

pytestmark = pytest.mark.browser
WAIT_MS = 60_000


def test_uploaded_recording_becomes_its_transcript(
    logged_in_page: Page, server: Server, tmp_path: Path
) -> None:
    blocks = script(40)
    recording = tmp_path / "Quartalsbericht 会议 é.wav"
    soundfile.write(recording, encode_blocks(blocks), SAMPLE_RATE, subtype="PCM_16")
    page = logged_in_page
    page.goto(server.base_url)
    page.locator("#files").set_input_files(recording)
    row = page.locator("#upload-list > li", has_text="Quartalsbericht")
    opened = row.locator("[data-act=open]")
    expect(opened).to_be_visible(timeout=WAIT_MS)
    opened.click()
    last_word = script_text(blocks).split()[-1]
    expect(page.locator("main")).to_contain_text(last_word, timeout=WAIT_MS)
    text = page.context.request.get(f"{page.url.split('?')[0]}export.txt").text()
    title, _, said = text.partition("\n")
    assert title == recording.stem
    assert " ".join(said.split()) == script_text(blocks)
    # What was said, and what the recording is called, is in no log.
    log = server.log_path.read_text(errors="replace")
    assert last_word not in log
    assert "Quartalsbericht" not in log


def test_text_renamed_to_wav_is_refused_with_a_sentence(
    logged_in_page: Page, server: Server, tmp_path: Path
) -> None:
    impostor = tmp_path / "notes.wav"
    impostor.write_text("These are only words. " * 200)
    page = logged_in_page
    page.goto(server.base_url)
    page.locator("#files").set_input_files(impostor)
    row = page.locator("#upload-list > li", has_text="notes.wav")
    expect(row).to_contain_text("not an audio or video recording", timeout=WAIT_MS)
