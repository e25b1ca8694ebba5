"""What a capture in a real Chromium hears: the microphone, a shared tab, or both in one channel.

The tab "Meeting" plays a voice of its own; Chromium is told to share it without a dialogue.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from asr_engine.backends.scripted import encode_blocks, script, script_text
from tests.e2e.captures import (
    finals,
    numbers,
    start_captions,
    stop_and_save,
    stored_language,
    stored_text,
    write_microphone,
)
from tests.e2e.conftest import Server, new_page

pytestmark = pytest.mark.browser
expect.set_options(timeout=30_000)  # for what a voice takes to say, on a busy machine

PLAY = """([title, wav]) => {
    document.title = title;
    const audio = new Audio(`data:audio/wav;base64,${wav}`);
    document.body.append(audio);
    document.addEventListener("click", () => audio.play());
}"""


class Meeting:
    """A page to capture with, and a tab that plays `said` when it is told to."""

    def __init__(self, page: Page, tab: Page) -> None:
        self.page = page
        self.tab = tab

    def speak(self) -> None:
        self.tab.bring_to_front()
        self.tab.mouse.click(2, 2)
        self.page.bring_to_front()


@pytest.fixture
def meeting(
    server: Server, launch_browser: Callable[..., Browser], tmp_path: Path
) -> Iterator[Callable[..., Meeting]]:
    """`meeting(microphone=…, tab=…)`: blocks that each says."""
    contexts: list[BrowserContext] = []

    def open_meeting(microphone: list[int | None], tab: list[int | None]) -> Meeting:
        browser = launch_browser(
            write_microphone(tmp_path / "microphone.wav", encode_blocks(microphone)),
            shares="Meeting",
        )
        page = new_page(browser, server, server.base_url, contexts)
        other = page.context.new_page()
        wav = write_microphone(tmp_path / "tab.wav", encode_blocks(tab)).read_bytes()
        other.evaluate(PLAY, ["Meeting", base64.b64encode(wav).decode()])
        page.bring_to_front()
        return Meeting(page, other)

    yield open_meeting
    for context in contexts:
        context.close()


def start_with(meeting: Meeting, source: str, title: str) -> None:
    """The microphone plays from the moment it may be opened: that of the start."""
    page = meeting.page
    page.goto("/live/new/")
    page.locator("#source-before").select_option(source)
    page.get_by_label("Title").fill(title)
    page.locator("#id_language").select_option("en")
    page.context.grant_permissions(["microphone"])
    page.get_by_role("button", name="Start captions").click()
    expect(page.locator(".capture-state")).to_have_attribute("data-state", "live")


def loudness(page: Page, source: str) -> str | None:
    return page.locator(f".capture-level [data-source={source}] .meter").get_attribute(
        "data-loudness"
    )


def test_a_shared_tab_is_captioned_without_any_microphone(
    server: Server, meeting: Callable[..., Meeting]
) -> None:
    said = script(40, first=100)
    call = meeting(microphone=script(40), tab=said)
    start_with(call, "shared", "A meeting in a tab")
    call.speak()
    expect(call.page.locator(".captions-list")).to_contain_text("w139")
    assert call.page.locator(".capture-level .needs-microphone").is_hidden()
    assert numbers(finals(call.page)) == list(range(100, 140))
    assert stored_text(server, stop_and_save(call.page)) == script_text(said)


def test_microphone_and_tab_are_mixed_and_each_has_its_level(
    server: Server, meeting: Callable[..., Meeting]
) -> None:
    call = meeting(microphone=script(16), tab=script(16, first=100))
    start_with(call, "both", "A meeting and a room")
    page = call.page
    expect(page.locator(".capture-level [data-source=microphone] .meter")).to_have_attribute(
        "data-loudness", "speech"
    )
    assert loudness(page, "shared") == "quiet"
    expect(page.locator(".captions-list")).to_contain_text("w15")
    call.speak()
    expect(page.locator(".capture-level [data-source=shared] .meter")).to_have_attribute(
        "data-loudness", "speech"
    )
    expect(page.locator(".captions-list")).to_contain_text("w115")
    recording = stop_and_save(page)
    assert numbers(stored_text(server, recording).split()) == [*range(16), *range(100, 116)]


def test_the_source_changes_while_captions_run_and_no_word_is_lost(
    server: Server, meeting: Callable[..., Meeting]
) -> None:
    call = meeting(microphone=script(80), tab=[None] * 10)
    start_with(call, "microphone", "More to hear")
    page = call.page
    expect(page.locator(".captions-partial .caption-text")).not_to_be_empty()
    source = page.locator("#source-now")
    source.select_option("both")
    expect(page.locator(".capture-level [data-source=shared]")).to_be_visible()
    expect(page.locator(".captions-list")).to_contain_text("w31")
    source.select_option("microphone")
    expect(page.locator(".capture-level [data-source=shared]")).to_be_hidden()
    expect(page.locator(".captions-list")).to_contain_text("w79")
    assert stored_text(server, stop_and_save(page)) == script_text(script(80))


def test_sharing_that_stops_leaves_the_microphone_and_says_so(
    server: Server, meeting: Callable[..., Meeting]
) -> None:
    call = meeting(microphone=script(60), tab=[None] * 10)
    start_with(call, "both", "The tab goes")
    page = call.page
    expect(page.locator(".captions-list .caption")).not_to_have_count(0)
    call.tab.close()
    expect(page.locator(".capture-trouble")).to_contain_text("Only the microphone is heard now")
    expect(page.locator("#source-now")).to_have_value("microphone")
    expect(page.locator(".captions-list")).to_contain_text("w59")
    assert stored_text(server, stop_and_save(page)) == script_text(script(60))


def test_captions_pause_when_all_that_was_heard_is_shared_no_more(
    server: Server, meeting: Callable[..., Meeting]
) -> None:
    call = meeting(microphone=script(40), tab=script(16, first=100))
    start_with(call, "shared", "Nothing left")
    page = call.page
    call.speak()
    expect(page.locator(".captions-list")).to_contain_text("w115")
    call.tab.close()
    expect(page.locator(".capture-trouble")).to_contain_text("captions are paused")
    expect(page.locator(".capture-state-words")).to_have_text("Paused")
    page.locator("#source-now").select_option("microphone")
    expect(page.locator(".capture-trouble")).to_be_hidden()
    expect(page.locator(".capture-state-words")).to_have_text("Live")
    expect(page.locator(".captions-list")).to_contain_text("w39")
    said = numbers(stored_text(server, stop_and_save(page)).split())
    assert said == [*range(100, 116), *range(40)]


WITHOUT_SOUND = """
    navigator.mediaDevices.getDisplayMedia = async () =>
        document.createElement("canvas").captureStream(1);
"""


def test_a_share_without_sound_is_explained(speaker: Callable[..., Page]) -> None:
    page = speaker(script(16))
    page.add_init_script(WITHOUT_SOUND)
    page.goto("/live/new/")
    page.locator("#source-before").select_option("shared")
    page.get_by_role("button", name="Choose what to share").click()
    expect(page.get_by_role("alert")).to_contain_text("shared without its sound")
    page.get_by_role("button", name="Start captions").click()
    expect(page.get_by_role("alert")).to_contain_text("switch on")
    expect(page.locator(".capture-before")).to_be_visible()
    page.locator("#source-before").select_option("microphone")
    expect(page.get_by_role("alert")).to_be_hidden()


def test_a_refused_share_leaves_what_is_heard_as_it_was(speaker: Callable[..., Page]) -> None:
    page = speaker(script(60))
    page.add_init_script(
        "navigator.mediaDevices.getDisplayMedia = async () => {"
        " throw new DOMException('no', 'NotAllowedError'); };"
    )
    start_captions(page, "No share")
    page.locator("#source-now").select_option("both")
    expect(page.locator(".capture-trouble")).to_contain_text("Nothing was shared")
    expect(page.locator("#source-now")).to_have_value("microphone")
    expect(page.get_by_role("button", name="Share again")).to_be_visible()
    expect(page.locator(".captions-list")).to_contain_text("w59")
    assert numbers(finals(page)) == list(range(60))
    stop_and_save(page)


def test_a_browser_that_shares_no_sound_says_so_and_offers_the_microphone_alone(
    speaker: Callable[..., Page],
) -> None:
    page = speaker(script(8))
    page.add_init_script(
        "navigator.mediaDevices.getSupportedConstraints = () => ({ echoCancellation: true });"
    )
    page.goto("/live/new/")
    expect(page.locator(".capture-before .source-obstacle")).to_contain_text(
        re.compile("pictures without their sound")
    )
    offered = page.locator("#source-before option:not([disabled])")
    assert offered.all_inner_texts() == ["Microphone"]


def test_the_language_changes_while_captions_run_and_no_word_is_lost(
    server: Server, speaker: Callable[..., Page]
) -> None:
    blocks = script(40)
    page = speaker(blocks)
    start_captions(page, "Two languages")
    language = page.locator("#language-now")
    expect(language).to_have_value("en")
    expect(page.locator(".captions-partial .caption-text")).not_to_be_empty()
    language.select_option("de")
    expect(page.locator(".captions-list")).to_contain_text("w39")
    expect(language).to_have_value("de")
    expect(page.locator("#language .choice-note")).to_be_empty()
    recording = stop_and_save(page)
    assert stored_text(server, recording) == script_text(blocks)
    assert stored_language(server, recording) == "de"
