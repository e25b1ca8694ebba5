"""The pages in a real browser: uploads that survive, the player, the keys, the theme."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import soundfile
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Route, expect

from asr_engine.audio import SAMPLE_RATE
from asr_engine.backends.scripted import encode_blocks, script
from tests.e2e.conftest import Server, let_in, log_in

pytestmark = pytest.mark.browser
WAIT_MS = 60_000


@pytest.fixture(scope="module")
def recording_address(
    server: Server, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """A transcribed recording of the administrator."""
    path = tmp_path_factory.mktemp("audio") / "numbers.wav"
    soundfile.write(path, encode_blocks(script(80)), SAMPLE_RATE, subtype="PCM_16")
    context = browser.new_context(base_url=server.base_url)
    page = context.new_page()
    log_in(page, server)
    page.locator("#files").set_input_files(path)
    upload_row(page, path.name).locator("[data-act=open]").click(timeout=WAIT_MS)
    expect(page.locator("#transcript .line").first).to_be_visible(timeout=WAIT_MS)
    address = page.url
    context.close()
    return address


def upload_row(page: Page, name: str) -> Locator:
    return page.locator("#upload-list > li", has_text=name)


def test_upload_goes_on_where_it_was_after_a_lost_connection_and_a_reload(
    logged_in_page: Page, tmp_path: Path
) -> None:
    page = logged_in_page
    path = tmp_path / "long meeting.wav"
    path.write_bytes(b"no audio, but many bytes " * 800_000)
    sent: list[int] = []

    def cut_after_one_piece(route: Route) -> None:
        if is_patch(route) and sent:
            route.abort("connectionreset")
            return
        if is_patch(route):
            sent.append(1)
        route.continue_()

    page.route("**/api/v1/uploads/*", cut_after_one_piece)
    page.locator("#files").set_input_files(path)
    row = upload_row(page, "long meeting.wav")
    expect(row).to_contain_text("is safe on the server", timeout=WAIT_MS)
    page.on("dialog", lambda dialog: dialog.accept())  # "leave this page?"
    page.reload()
    page.unroute("**/api/v1/uploads/*")  # not before: a retry would still get through
    row = upload_row(page, "long meeting.wav")
    expect(row).to_contain_text("41 % of 19 MB is safe on the server")
    offsets: list[str] = []
    page.on(
        "request",
        lambda request: (
            offsets.append(request.headers["upload-offset"]) if request.method == "PATCH" else None
        ),
    )
    page.locator("#files").set_input_files(path)
    expect(row).to_contain_text("not an audio or video recording", timeout=WAIT_MS)
    assert offsets[0] == str(8 * 1024**2)
    row.get_by_role("button", name="Remove from this list").click()
    expect(row).to_have_count(0)
    page.reload()
    expect(upload_row(page, "long meeting.wav")).to_have_count(0)


def test_paused_upload_waits_and_cancelled_upload_is_gone(
    logged_in_page: Page, tmp_path: Path
) -> None:
    page = logged_in_page
    path = tmp_path / "paused.wav"
    path.write_bytes(b"many bytes " * 2_000_000)
    page.route("**/api/v1/uploads/*", lambda route: None if is_patch(route) else route.continue_())
    page.locator("#files").set_input_files(path)
    row = upload_row(page, "paused.wav")
    row.get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("Paused at")
    page.unroute("**/api/v1/uploads/*")
    row.get_by_role("button", name="Cancel upload").click()
    expect(row).to_have_count(0)
    page.reload()
    expect(upload_row(page, "paused.wav")).to_have_count(0)


def test_upload_that_is_cancelled_while_the_server_makes_room_is_gone(
    logged_in_page: Page, tmp_path: Path
) -> None:
    page = logged_in_page
    path = tmp_path / "hasty.wav"
    path.write_bytes(b"some bytes")
    held: list[Route] = []
    page.route("**/api/v1/uploads/", lambda route: held.append(route))  # noqa: PLW0108  # not a builtin
    page.locator("#files").set_input_files(path)
    row = upload_row(page, "hasty.wav")
    row.get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("Paused at")
    row.get_by_role("button", name="Cancel upload").click()
    expect(row).to_contain_text("Cancelling")
    (asking,) = held
    asking.continue_()
    expect(row).to_have_count(0)
    page.unroute("**/api/v1/uploads/")
    page.reload()
    expect(upload_row(page, "hasty.wav")).to_have_count(0)


def is_patch(route: Route) -> bool:
    return route.request.method == "PATCH"


def test_what_cannot_be_audio_is_refused_before_a_byte_is_sent(
    logged_in_page: Page, tmp_path: Path
) -> None:
    page = logged_in_page
    (tmp_path / "empty.wav").touch()
    (tmp_path / "slides.pdf").write_bytes(b"%PDF-1.7")
    posts: list[str] = []
    page.on(
        "request", lambda request: posts.append(request.url) if is_upload(request.url) else None
    )
    page.locator("#files").set_input_files([tmp_path / "empty.wav", tmp_path / "slides.pdf"])
    expect(upload_row(page, "empty.wav")).to_contain_text("This file is empty.")
    expect(upload_row(page, "slides.pdf")).to_contain_text("neither audio nor video")
    assert posts == []


def test_what_is_done_is_cleared_with_one_click(logged_in_page: Page, tmp_path: Path) -> None:
    page = logged_in_page
    for name in ("first.wav", "second.wav"):
        (tmp_path / name).touch()
    page.locator("#files").set_input_files(tmp_path / "first.wav")
    expect(upload_row(page, "first.wav")).to_contain_text("This file is empty.")
    page.locator("#files").set_input_files(tmp_path / "second.wav")
    page.get_by_role("button", name="Clear what is done").click()
    expect(page.locator("#uploads")).to_be_hidden()


def test_keyboard_reaches_the_file_picker_and_nothing_moves(logged_in_page: Page) -> None:
    page = logged_in_page
    language = page.locator("#language")
    before = language.bounding_box()
    page.get_by_role("link", name="Start captions").focus()
    page.keyboard.press("Tab")
    expect(page.locator("#files")).to_be_focused()
    assert language.bounding_box() == before
    label = page.locator("label[for=files]")
    assert label.evaluate("element => getComputedStyle(element).outlineStyle") == "solid"


def is_upload(address: str) -> bool:
    return "/api/v1/uploads/" in address


def test_whole_page_accepts_a_drop(logged_in_page: Page) -> None:
    page = logged_in_page
    page.evaluate(
        """() => {
            window.dropped = new DataTransfer();
            window.dropped.items.add(new File(["text"], "dropped.txt", {type: "text/plain"}));
            document.body.dispatchEvent(
                new DragEvent("dragenter", {dataTransfer: window.dropped, bubbles: true}));
        }"""
    )
    expect(page.locator("#drop-veil")).to_be_visible()
    page.evaluate(
        """() => document.body.dispatchEvent(
            new DragEvent("drop", {dataTransfer: window.dropped, bubbles: true}))"""
    )
    expect(page.locator("#drop-veil")).to_be_hidden()
    expect(upload_row(page, "dropped.txt")).to_contain_text("neither audio nor video")


def test_player_follows_clicks_and_keys(logged_in_page: Page, recording_address: str) -> None:
    page = logged_in_page
    page.goto(recording_address)
    audio = page.locator("#audio")
    expect(page.locator("#player-problem")).to_be_hidden()
    line = page.locator("#transcript .line").last
    start_s = int(line.get_attribute("data-start") or "0") / 1000
    line.click(position={"x": 2, "y": 6})
    expect(line).to_have_class(re.compile("is-spoken"))
    assert audio.evaluate("audio => audio.currentTime") >= start_s
    page.keyboard.press(" ")
    assert audio.evaluate("audio => audio.paused")
    here = audio.evaluate("audio => audio.currentTime")
    page.keyboard.press("ArrowLeft")
    assert audio.evaluate("audio => audio.currentTime") == pytest.approx(max(0, here - 5), abs=0.1)
    page.keyboard.press("k")  # to where a sentence begins: five seconds back nobody may speak
    spoken = page.evaluate("[...CSS.highlights.get('spoken-word')].map(String).join()")
    assert spoken.strip()
    page.get_by_role("slider", name="Position").focus()
    page.keyboard.press("Home")
    assert audio.evaluate("audio => audio.currentTime") == 0
    page.keyboard.press("ArrowUp")
    assert audio.evaluate("audio => audio.currentTime") == pytest.approx(5, abs=0.1)


def test_an_open_page_plays_the_sound_of_its_text(
    logged_in_page: Page, recording_address: str
) -> None:
    """Another track is shown: the new sound waits where the old one was, at the same speed."""
    page = logged_in_page
    page.goto(recording_address)
    audio = page.locator("#audio")
    status = page.locator("#status").evaluate("status => status.outerHTML")
    for name, value in (("sound", "player-1.m4a"), ("duration-ms", "8000"), ("language", "de")):
        status = re.sub(f'data-{name}="[^"]*"', f'data-{name}="{value}"', status)
    page.locator("#speed").select_option("1.5")
    page.get_by_role("slider", name="Position").focus()
    page.keyboard.press("ArrowUp")
    page.get_by_role("button", name="Play").click()
    expect(page.locator("#player")).to_have_class(re.compile("is-playing"))
    page.route("**/status/*", lambda route: route.fulfill(body=status, content_type="text/html"))
    page.evaluate("document.dispatchEvent(new Event('connection:back'))")
    expect(audio).to_have_attribute("src", re.compile(r"/media\?sound=player-1\.m4a$"))
    expect(page.locator("#player-length")).to_have_text("0:08")
    expect(page.locator("#transcript")).to_have_attribute("lang", "de")
    expect(page.locator("#player")).not_to_have_class(re.compile("is-playing"))
    expect(audio).not_to_have_js_property("readyState", 0)
    rate, is_paused, at_s = audio.evaluate("at => [at.playbackRate, at.paused, at.currentTime]")
    assert (rate, is_paused) == (1.5, True)
    assert at_s >= 5


def growth(*refined: int, draft: int | None = None) -> str:
    """What the server answers while a transcript grows: lines by index, and the tail."""

    def paragraph(index: int, text: str) -> str:
        line = f'<span class="line" data-index="{index}" data-start="0" data-end="9" data-words="">'
        return f'<div class="paragraph"><p>{line}{text} {index}.</span></p></div>'

    tail = "" if draft is None else paragraph(draft, "Draft")
    return "".join(paragraph(index, "Refined") for index in refined) + (
        '<div class="transcript" id="transcript-tail" hx-swap-oob="true"'
        f' data-tail="{draft or ""}" data-revision="7">{tail}</div>'
    )


def test_refined_text_takes_the_place_of_the_draft_while_the_page_is_open(
    logged_in_page: Page, recording_address: str
) -> None:
    page = logged_in_page
    answers = [
        ("innerHTML", growth(0, draft=1)),
        ("beforeend", growth(1, draft=2)),
        ("beforeend", growth(draft=3)),
        ("beforeend", growth(2, 3)),
    ]
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url.partition("?")[2])
        swap, body = answers[len(asked) - 1]
        route.fulfill(body=body, content_type="text/html", headers={"HX-Reswap": swap})

    page.goto(recording_address)
    page.route("**/transcript/*", answer)
    page.route("**/status/*", lambda route: route.fulfill(status=204))  # it asks for text as well
    shown = [
        (["Refined 0."], ["Draft 1."]),
        (["Refined 0.", "Refined 1."], ["Draft 2."]),
        (["Refined 0.", "Refined 1."], ["Draft 3."]),
        (["Refined 0.", "Refined 1.", "Refined 2.", "Refined 3."], []),
    ]
    for refined, draft in shown:
        page.evaluate("document.dispatchEvent(new Event('connection:back'))")
        expect(page.locator("#transcript .line")).to_have_text(refined)
        expect(page.locator("#transcript-tail .line")).to_have_text(draft)
    assert asked[1:] == [
        "revision=7&after=0&tail=1",
        "revision=7&after=1&tail=2",
        "revision=7&after=1&tail=3",
    ]


def test_menu_closes_when_a_download_is_chosen(
    logged_in_page: Page, recording_address: str
) -> None:
    page = logged_in_page
    page.goto(recording_address)
    menu = page.locator("#tools .menu").first
    menu.locator("summary").click()
    with page.expect_download() as download:
        menu.get_by_role("link", name="Text").click()
    assert download.value.suggested_filename.endswith(".txt")  # another test renames it
    expect(menu.get_by_role("link", name="Text")).to_be_hidden()


def test_question_mark_shows_the_keys_and_slash_searches(
    logged_in_page: Page, recording_address: str
) -> None:
    page = logged_in_page
    page.goto(recording_address)
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    expect(page.locator("#keys")).to_contain_text("Play or pause")
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("?")
    expect(page.locator("#keys")).to_be_hidden()
    expect(page.locator("#search")).to_have_value("?")


def test_theme_is_kept_and_comes_with_the_first_byte(logged_in_page: Page) -> None:
    page = logged_in_page
    page.goto("/profile/")
    page.locator("main").get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    first = page.context.request.get("/profile/").text()
    assert '<html lang="en" data-theme="dark">' in first
    page.locator("main").get_by_role("button", name="System").click()
    assert "data-theme=" not in page.context.request.get("/profile/").text().split("<head>")[0]


def test_zone_of_the_browser_is_used(server: Server, browser: Browser) -> None:
    context = browser.new_context(base_url=server.base_url, timezone_id="Asia/Tokyo")
    page = context.new_page()
    log_in(page, server)
    assert {"Asia/Tokyo"} == {
        cookie["value"] for cookie in context.cookies() if cookie["name"] == "time_zone"
    }
    context.close()


def test_page_says_when_the_connection_is_lost_and_when_it_is_back(
    logged_in_page: Page, context: BrowserContext
) -> None:
    page = logged_in_page
    context.set_offline(True)
    expect(page.locator("#connection")).to_contain_text("connection is lost")
    context.set_offline(False)
    expect(page.locator("#connection")).to_contain_text("Connected again")


def test_without_script_a_recording_is_renamed_and_a_dialog_closes(
    browser: Browser, server: Server, recording_address: str
) -> None:
    context = browser.new_context(base_url=server.base_url, java_script_enabled=False)
    let_in(context, server)
    page = context.new_page()
    page.goto(recording_address)
    title = page.locator("h1").inner_text()
    more = page.locator(".recording-tools summary", has_text="More")
    more.click()
    page.get_by_role("link", name="Delete recording").click()
    expect(page.locator("#delete")).to_be_in_viewport()
    page.get_by_role("button", name="Keep it").click()
    expect(page.locator("#delete")).to_be_hidden()
    more.click()
    page.get_by_role("link", name="Rename").click()
    page.locator("#new-title").fill("Without script")
    page.locator("#new-title").press("Enter")
    expect(page.locator("h1")).to_have_text("Without script")
    page.goto(f"{recording_address}?open=rename")
    page.locator("#new-title").fill(title)
    page.get_by_role("button", name="Save title").click()
    expect(page.locator("h1")).to_have_text(title)
    context.close()


def test_recording_is_renamed_and_shared_with_everybody_and_with_a_guest(
    logged_in_page: Page, recording_address: str, browser: Browser, server: Server
) -> None:
    page = logged_in_page
    page.goto(recording_address)
    more = page.locator(".recording-tools summary", has_text="More")
    more.click()
    page.get_by_role("link", name="Rename").click()
    page.keyboard.press("Escape")
    expect(more).to_be_focused()
    more.click()
    page.get_by_role("link", name="Rename").click()
    page.locator("#new-title").fill("Zahlen <b>数字</b>")
    page.get_by_role("button", name="Save title").click()
    expect(page.locator("h1")).to_have_text("Zahlen <b>数字</b>")
    page.get_by_role("link", name="Share").click()
    page.get_by_label("Everybody who can log in").check()
    page.get_by_role("button", name="Save who may read").click()
    page.get_by_role("searchbox", name="Find a person").fill("nobody")
    expect(page.locator("#share-found")).to_contain_text("Nobody else of that name")
    page.get_by_role("button", name="Make a link").click()
    link = page.get_by_role("textbox", name="The new link").input_value()
    page.goto(recording_address)
    expect(page.locator(".recording-head .row-facts")).to_contain_text("Everybody who can log in")

    said: list[str] = []
    guests = browser.new_context(base_url=server.base_url)
    guest = guests.new_page()
    guest.on("console", lambda message: said.append(message.text))
    guest.on("pageerror", lambda error: said.append(str(error)))
    guest.goto(link)
    expect(guest.locator("h1")).to_have_text("Zahlen <b>数字</b>")
    guest.wait_for_function("document.getElementById('audio').duration > 0")
    with guest.expect_download() as download:
        guest.locator(".recording-tools summary").click()
        guest.get_by_role("link", name="Text").click()
    assert download.value.suggested_filename.endswith(".txt")
    guests.close()
    assert said == []
    assert link.rstrip("/").rsplit("/", maxsplit=1)[-1] not in server.log_path.read_text()


def test_pages_run_under_the_policy(logged_in_page: Page, recording_address: str) -> None:
    page = logged_in_page
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    for path in ("/", "/?q=x", "/profile/", recording_address, "/accounts/email/"):
        page.goto(path)
        page.wait_for_load_state("networkidle")
    assert said == []
