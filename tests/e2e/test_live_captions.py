"""A voice in a real Chromium's microphone becomes captions, and nothing of it is lost.

The scripted model reads its words out of the samples, so a lost, doubled or reordered tenth of a
second is a wrong word. The microphone begins to play when the page opens it: with the click.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
from playwright.sync_api import Browser, BrowserContext, Page, expect

from asr_engine.backends.scripted import script, script_text
from asr_engine.config import engine_settings
from asr_engine.store import ModelStore
from tests.e2e.captures import (
    Wire,
    finals,
    numbers,
    start_captions,
    stop_and_save,
    stored_mode_ms,
    stored_text,
)
from tests.e2e.conftest import ROOT, Server, new_page
from tests.fakes.digits import DIGITS_MODEL, digits

pytestmark = pytest.mark.browser
expect.set_options(timeout=30_000)  # for what a voice takes to say, on a busy machine


def test_a_late_reader_sees_all_and_the_stored_transcript_is_what_was_shown(
    server: Server, speaker: Callable[..., Page], browser: Browser
) -> None:
    blocks = script(40)
    page = speaker(blocks)
    start_captions(page, "From the first word")
    expect(page.locator(".captions-partial .caption-text")).not_to_be_empty()
    expect(page.locator(".captions-list .caption")).not_to_have_count(0)

    contexts: list[BrowserContext] = []
    reader = new_page(browser, server, server.base_url, contexts)
    reader.goto(page.url.replace("/capture/", "/"))
    expect(reader.locator(".captions-list")).to_contain_text("w0 ")  # said before they came
    expect(reader.locator(".captions-list")).to_contain_text("w39")  # and said after
    assert " ".join(finals(reader)) == script_text(blocks)

    recording = stop_and_save(page)
    expect(reader.get_by_role("link", name="Open the recording")).to_be_visible()
    assert stored_text(server, recording) == " ".join(finals(reader))
    contexts[0].close()


def test_a_cut_network_loses_no_word(
    server: Server, speaker: Callable[..., Page], wire: Wire
) -> None:
    blocks = script(60)
    page = speaker(blocks, wire.port)
    start_captions(page, "A cut wire")
    expect(page.locator(".captions-list .caption")).not_to_have_count(0)
    wire.cut()
    strip = page.locator(".capture-link")
    expect(strip).to_contain_text(re.compile(r"Reconnecting\. Nothing is lost: [4-9] s kept here"))
    wire.mend()
    expect(strip).to_contain_text("Caught up. Nothing was lost.")
    expect(page.locator(".captions-list")).to_contain_text("w59")
    assert stored_text(server, stop_and_save(page)) == script_text(blocks)
    assert numbers(finals(page)) == list(range(60))


def test_a_reload_continues_the_session_with_a_gap_and_nothing_twice(
    server: Server, speaker: Callable[..., Page]
) -> None:
    page = speaker(script(60))
    page.on("dialog", lambda dialog: dialog.accept())  # "Leave this page?"
    start_captions(page, "A reload")
    expect(page.locator(".captions-list .caption")).to_have_count(2)
    page.reload()
    expect(page.locator(".capture-state")).to_have_attribute("data-state", "live")
    expect(page.locator(".caption-gap")).to_have_count(1)
    # The fake device says its words from the beginning again.
    expect(page.locator(".captions-list .caption-text").last).to_contain_text("w23")
    said = numbers(stored_text(server, stop_and_save(page)).split())
    again = said.index(0, 1)
    assert said[:again] == list(range(again))
    assert again >= 16
    assert said[again:] == list(range(len(said) - again))


def test_a_pause_is_no_gap_and_readers_are_told(
    server: Server, speaker: Callable[..., Page]
) -> None:
    page = speaker(script(50))
    start_captions(page, "A pause")
    reader = page.context.new_page()
    reader.goto(page.url.replace("/capture/", "/"))
    expect(reader.locator(".captions-list .caption")).not_to_have_count(0)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".capture-state-words")).to_have_text("Paused")
    expect(page.locator(".caption-paused")).to_have_count(1)
    expect(reader.locator(".captions-notice")).to_contain_text("The speaker has paused")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".capture-state-words")).to_have_text("Live")
    expect(reader.locator(".live-state-words")).to_have_text("Live")
    expect(page.locator(".captions-list")).to_contain_text("w49")
    said = numbers(finals(page))
    assert said == sorted(set(said))
    expect(page.locator(".caption-gap")).to_have_count(0)
    stop_and_save(page)


def test_speed_is_changed_while_a_voice_speaks_and_no_word_is_lost(
    server: Server, speaker: Callable[..., Page]
) -> None:
    blocks = script(60)
    page = speaker(blocks)
    start_captions(page, "Faster and slower", "Most accurate · 1120 ms")
    speed = page.locator("#latency-now")
    expect(speed).to_have_value("1120")
    for number, words in enumerate(("Fastest · 80 ms", "Accurate · 560 ms", "Fast · 160 ms")):
        expect(page.locator(".captions-list")).to_contain_text(f"w{8 * number + 7}")
        speed.select_option(words)
    expect(page.locator(".captions-list")).to_contain_text("w39")
    speed.focus()
    speed.press("ArrowUp")
    expect(page.locator(".captions-list")).to_contain_text("w59")
    expect(speed).to_have_value("80")
    expect(page.locator(".latency-note")).to_be_empty()
    recording = stop_and_save(page)
    assert stored_text(server, recording) == script_text(blocks)
    assert numbers(finals(page)) == list(range(60))
    assert stored_mode_ms(server, recording) == 80


def test_a_speed_that_is_refused_is_explained_and_returns(speaker: Callable[..., Page]) -> None:
    page = speaker(script(20))
    start_captions(page, "No such speed")
    speed = page.locator("#latency-now")
    expect(speed).to_have_value("160")
    page.evaluate("document.querySelector('#latency-now').append(new Option('Wrong', '77'))")
    speed.select_option("77")
    expect(page.locator(".latency-note")).to_have_text(
        "The running speech model does not offer this speed (latency mode). "
        "Captions go on as before."
    )
    expect(speed).to_have_value("160")
    expect(page.locator(".captions-list")).to_contain_text("w19")
    assert numbers(finals(page)) == list(range(20))
    speed.select_option("Fastest · 80 ms")
    expect(page.locator(".latency-note")).to_be_empty()
    stop_and_save(page)


def test_speed_chosen_before_a_reload_stands_after_it(speaker: Callable[..., Page]) -> None:
    page = speaker(script(40))
    page.on("dialog", lambda dialog: dialog.accept())
    start_captions(page, "A speed and a reload")
    page.locator("#latency-now").select_option("Accurate · 560 ms")
    expect(page.locator(".captions-list .caption")).to_have_count(1)
    page.reload()
    expect(page.locator(".capture-state")).to_have_attribute("data-state", "live")
    expect(page.locator("#latency-now")).to_have_value("560")
    stop_and_save(page)


def test_a_silent_microphone_is_named_while_captions_run(speaker: Callable[..., Page]) -> None:
    page = speaker([None] * 5)
    start_captions(page, "Nobody speaks")
    expect(page.locator(".capture-trouble")).to_contain_text("Nothing at all comes from the mic")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".after-title")).to_have_text("Saved")


@pytest.mark.models
def test_whisper_captions_a_voice_while_it_speaks(
    start_server: Callable[..., Server], launch_browser: Callable[..., Browser], tmp_path: Path
) -> None:
    server = start_server(ASR_LIVE_BACKEND="whisper")
    voice, rate = soundfile.read(ROOT / "static" / "audio" / "sample.ogg", dtype="float32")
    quiet = np.zeros(rate, dtype="float32")
    microphone = tmp_path / "voice.wav"
    soundfile.write(
        microphone, np.concatenate([quiet, voice[: 133 * rate // 10], quiet, quiet]), rate
    )
    contexts: list[BrowserContext] = []
    page = new_page(launch_browser(microphone), server, server.base_url, contexts)
    start_captions(page, "A voice")
    expect(page.locator(".captions-partial .caption-text")).to_contain_text(
        re.compile("lobster", re.IGNORECASE)
    )
    reader = new_page(launch_browser(), server, server.base_url, contexts)
    reader.goto(page.url.replace("/capture/", "/"))
    expect(page.locator(".capture-trouble")).to_be_visible()  # the voice is at its end
    recording = stop_and_save(page)
    expect(reader.get_by_role("link", name="Open the recording")).to_be_visible()
    shown = " ".join(finals(reader))
    assert stored_text(server, recording) == shown
    for context in contexts:
        context.close()


@pytest.mark.models
def test_a_nemo_model_captions_spoken_digits(
    start_server: Callable[..., Server], launch_browser: Callable[..., Browser], tmp_path: Path
) -> None:
    """A model of the administrator's own, chosen by its name alone; the speed may change."""
    store = tmp_path / "models"
    ModelStore(store).add("digits", DIGITS_MODEL)
    (store / "silero-vad").symlink_to(ModelStore(engine_settings().model_dir).path("silero-vad"))
    server = start_server(
        ASR_LIVE_BACKEND="auto", ASR_NEMO_MODEL="digits", ASR_MODEL_DIR=str(store)
    )
    spoken = [item for item in digits("seen") if len(item.word_times) > 4][:2]
    # The room's noise, not digital silence, around what is said.
    quiet = np.random.default_rng(7).normal(0, 0.002, 3 * 16_000).astype("float32")
    microphone = tmp_path / "digits.wav"
    parts = [part for item in spoken for part in (quiet, item.samples())]
    soundfile.write(microphone, np.concatenate([*parts, quiet]), 16_000)
    contexts: list[BrowserContext] = []
    page = new_page(launch_browser(microphone), server, server.base_url, contexts)
    start_captions(page, "Digits", speed="160")
    first_words = " ".join(spoken[0].text.split()[:3])
    expect(page.locator(".captions-partial .caption-text")).to_contain_text(
        re.compile(first_words, re.IGNORECASE)
    )
    page.locator("#latency-now").select_option("560")
    expect(page.locator(".captions-list .caption-text")).to_have_count(2)
    recording = stop_and_save(page)
    text = stored_text(server, recording)
    expected = spoken[0].text.split() + spoken[1].text.split()
    said = text.lower().split()
    heard = difflib.SequenceMatcher(None, expected, said, autojunk=False)
    assert sum(block.size for block in heard.get_matching_blocks()) >= 0.8 * len(expected), text
    assert len(said) <= 1.2 * len(expected), text
    for context in contexts:
        context.close()


def test_a_page_without_a_microphone_says_why(logged_in_page: Page) -> None:
    logged_in_page.add_init_script(
        "Object.defineProperty(navigator, 'mediaDevices', {value: undefined});"
        "Object.defineProperty(window, 'isSecureContext', {value: false});"
    )
    logged_in_page.goto("/live/new/")
    expect(logged_in_page.get_by_role("alert")).to_contain_text("https://")
    expect(logged_in_page.get_by_role("button", name="Start captions")).to_be_disabled()


PAUSE_INSIDE_AN_UTTERANCE = """async () => {
    const { CaptionStore } = await import("/static/js/live/caption-store.js");
    const { CaptionsView } = await import("/static/js/live/captions-view.js");
    const root = document.querySelector("main");
    root.innerHTML = `<div class="captions-scroll"><ol class="captions-list"></ol>
        <div class="captions-partial"><span class="caption-time"></span>
        <p class="caption-text"></p></div></div>
        <button class="captions-back"><span class="captions-back-count"></span></button>`;
    const store = new CaptionStore();
    const view = new CaptionsView(root, store);
    const frame = () => new Promise(requestAnimationFrame);
    const shown = async (event) => {
        view.draw(store.apply(event));
        await frame();
        await frame();
        return root.querySelector(".captions-scroll").innerText.split(/\\n+/).filter(Boolean);
    };
    const open = { utterance: 0, start_ms: 1000 };
    await shown({ type: "partial", text: "Good morn", ...open });
    return [
        await shown({ type: "paused", seq: 1, start_ms: 4000 }),
        await shown({ type: "final", seq: 2, end_ms: 3900, text: "Good morning.", ...open }),
        await shown({ type: "partial", utterance: 1, start_ms: 4000, text: "Again" }),
    ];
}"""


def test_a_pause_stands_below_the_words_that_were_open(logged_in_page: Page) -> None:
    assert logged_in_page.evaluate(PAUSE_INSIDE_AN_UTTERANCE) == [
        ["Good morn"],
        ["Good morning.", "Paused"],
        ["Good morning.", "Paused", "Again"],
    ]
