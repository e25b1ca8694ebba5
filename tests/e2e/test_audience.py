"""What readers see, in a real Chromium: text that stands still, a room's screen, a link.

Where a test must say exactly what comes when, it plays the server's side of the captions socket
itself; pages, scripts and styles are the real ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, WebSocketRoute, expect

from tests.e2e.conftest import Server, let_in

pytestmark = pytest.mark.browser

NEW_SESSION = """async () => {
    const form = document.getElementById("capture-form");
    const body = new FormData(form);
    body.set("title", "Weekly meeting");
    const headers = { Accept: "application/json" };
    const answer = await fetch(form.action, { method: "POST", headers, body });
    return (await answer.json()).captions_page;
}"""
SETTLED = """() => new Promise((done) =>
    requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))))"""
AT_REST = """() => new Promise((done) => {
    const scroll = document.querySelector(".captions-scroll");
    let place = scroll.scrollTop;
    let frames = 0;
    const look = () => {
        frames = scroll.scrollTop === place ? frames + 1 : 0;
        place = scroll.scrollTop;
        return frames < 20 ? requestAnimationFrame(look) : done();
    };
    look();
})"""  # a turn of the wheel is a movement of many frames
SENTENCE = (
    "let me begin with the move to the new building since most of you will have questions about it "
    "and about the lifts on the north side which are not ready so that the first week will be the "
    "south entrance only"
)
WORDS = SENTENCE.split()


class Wire:
    """The server's side of a page's captions socket."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.sockets: list[WebSocketRoute] = []
        self.seq = 0
        self.utterance = 0
        page.route_web_socket(re.compile("/captions"), self._open)

    def _open(self, socket: WebSocketRoute) -> None:
        self.sockets.append(socket)

    def say(self, **event: Any) -> None:
        self.sockets[-1].send(json.dumps({"session": "s", **event}))

    def begin(self, finals: int = 0) -> None:
        """The socket is ready; so many finals were said before."""
        self.say(type="ready", state="live", seq=finals, title="Weekly meeting")
        events = [self._final(f"Sentence {number} of what was said.") for number in range(finals)]
        self.say(type="history", events=events)
        self.say(type="head", seq=finals)
        self.settle()

    def partial(self, text: str) -> None:
        number = self.utterance
        self.say(type="partial", utterance=number, start_ms=number * 5000, text=text)
        self.settle()

    def final(self, text: str, **more: Any) -> None:
        self.say(**self._final(text), **more)
        self.settle()

    def refined(self, utterance: int, text: str, **more: Any) -> None:
        """The second pass has heard an utterance."""
        event = self._change(utterance, text)
        self.say(**{**event, **more, "type": "refined"})
        self.settle()

    def settle(self) -> None:
        self.page.evaluate(SETTLED)

    def _final(self, text: str) -> dict[str, Any]:
        number = self.utterance
        self.utterance += 1
        return self._change(number, text)

    def _change(self, number: int, text: str) -> dict[str, Any]:
        self.seq += 1
        return {
            "type": "final",
            "seq": self.seq,
            "utterance": number,
            "start_ms": number * 5000,
            "end_ms": number * 5000 + 4000,
            "text": text,
        }


@pytest.fixture
def session_path(logged_in_page: Page) -> str:
    """The captions page of a new session of the page's person."""
    logged_in_page.goto("/live/new/")
    path: str = logged_in_page.evaluate(NEW_SESSION)
    return path


@pytest.fixture
def open_wired(logged_in_page: Page, session_path: str) -> Callable[..., Wire]:
    """`open_wired("room/", finals=3)`: a reader's page, and the wire that feeds it."""

    def open_page(path: str = "", finals: int = 0) -> Wire:
        wire = Wire(logged_in_page)
        logged_in_page.goto(session_path + path)
        expect(logged_in_page.locator("[data-preference][aria-pressed]").first).to_be_attached()
        wire.begin(finals)
        return wire

    return open_page


# Text stands still --------------------------------------------------------------------------------

PLACES = """() => {
    const scroll = document.querySelector(".captions-scroll");
    const place = (element) => element.getBoundingClientRect().top + scroll.scrollTop;
    const partial = document.querySelector(".captions-partial");
    return {
        finals: [...document.querySelectorAll(".captions-list .caption-text")].map(place),
        scrolled: scroll.scrollTop,
        partial: place(partial.querySelector(".caption-text")),
        height: partial.getBoundingClientRect().height,
        line: parseFloat(getComputedStyle(scroll).lineHeight),
    };
}"""


ON_SCREEN = """() => Object.fromEntries(
    [...document.querySelectorAll(".captions-list .caption-text")]
        .map((text) => [text.textContent, text.getBoundingClientRect()])
        .filter(([, { top, bottom }]) => bottom > 0 && top < innerHeight)
        .map(([text, { top }]) => [text, top]))"""


@pytest.mark.parametrize("width", [390, 1280])
def test_lines_that_are_shown_stand_still_while_a_partial_grows_and_closes(
    open_wired: Callable[..., Wire], logged_in_page: Page, width: int
) -> None:
    """Their place in the column never changes; the column moves up only when a line is added."""
    logged_in_page.set_viewport_size({"width": width, "height": 800})
    wire = open_wired(finals=80)
    before = logged_in_page.evaluate(PLACES)
    moves = 0
    for _ in range(3):
        for count in range(1, len(WORDS) + 1):
            wire.partial(" ".join(WORDS[:count]))
            now = logged_in_page.evaluate(PLACES)
            assert now["finals"] == pytest.approx(before["finals"], abs=0.1)
            if count > 1:
                assert now["partial"] == pytest.approx(before["partial"], abs=0.1)
            moved = now["scrolled"] - before["scrolled"]
            if count > 1 and now["height"] == before["height"]:
                assert moved == 0
            assert moved >= 0
            assert count == 1 or moved == pytest.approx(0, abs=0.1) or moved >= now["line"] - 1
            moves += moved > 0
            before = now
        wire.final(SENTENCE)
        now = logged_in_page.evaluate(PLACES)
        assert now["finals"][:-1] == pytest.approx(before["finals"], abs=0.1)
        assert now["finals"][-1] == pytest.approx(before["partial"], abs=0.1)  # where it grew
        assert now["scrolled"] == before["scrolled"]
        before = now
    assert moves >= 6  # it did follow, else nothing was tested


def test_who_scrolled_up_is_left_alone_and_finds_back(
    open_wired: Callable[..., Wire], logged_in_page: Page
) -> None:
    wire = open_wired(finals=80)
    logged_in_page.locator(".captions-scroll").hover()
    logged_in_page.mouse.wheel(0, -1500)
    expect(logged_in_page.locator(".captions-back")).to_be_visible()
    logged_in_page.evaluate(AT_REST)
    before = logged_in_page.evaluate(ON_SCREEN)
    assert len(before) > 3
    for count in range(1, len(WORDS)):
        wire.partial(" ".join(WORDS[:count]))
    wire.final(SENTENCE)
    assert logged_in_page.evaluate(ON_SCREEN) == pytest.approx(before, abs=0.1)
    expect(logged_in_page.locator(".captions-back-count")).to_have_text("1 new line")
    logged_in_page.keyboard.press("l")
    expect(logged_in_page.locator(".captions-back")).to_be_hidden()
    expect(logged_in_page.locator(".captions-list .caption-text").last).to_be_in_viewport()


# Text is refined in its place ---------------------------------------------------------------------

ROWS = """() => [...document.querySelectorAll(".captions-list .caption-text")].map((text) => {
    const { top } = text.getBoundingClientRect();
    return { top, isRefined: text.classList.contains("is-refined") };
})"""
ALIKE, LONGER, SHORTER = f"L{SENTENCE[1:]}.", f"{SENTENCE} {SENTENCE}", " ".join(WORDS[:3])


def tops(page: Page) -> list[float]:
    return [row["top"] for row in page.evaluate(ROWS)]


@pytest.mark.parametrize("width", [390, 1280])
def test_refined_text_moves_nothing_that_is_newer_while_a_reader_follows(
    open_wired: Callable[..., Wire], logged_in_page: Page, width: int
) -> None:
    """And what is older only moves up, as one, where a text has become longer."""
    page = logged_in_page
    page.set_viewport_size({"width": width, "height": 800})
    wire = open_wired(finals=80)
    for _ in range(4):
        wire.final(SENTENCE)
    wire.partial(SENTENCE)
    open_text = page.locator(".captions-partial .caption-text")
    for text in (ALIKE, LONGER, SHORTER):
        before, partial = tops(page), open_text.bounding_box()
        wire.refined(82, text)
        after = tops(page)
        assert page.locator(".captions-list .caption-text").nth(82).inner_text() == text
        assert page.evaluate(ROWS)[82]["isRefined"]
        expect(page.locator(".captions-list .caption").nth(82)).to_be_in_viewport()
        assert after[83:] == pytest.approx(before[83:], abs=0.6)
        assert open_text.bounding_box() == pytest.approx(partial, abs=0.6)
        moved = [now - then for now, then in zip(after[60:83], before[60:83], strict=True)]
        assert moved == pytest.approx([moved[0]] * len(moved), abs=0.6)
        if text is LONGER:
            assert moved[0] < -10
        else:
            assert moved[0] == pytest.approx(0, abs=0.6)


def test_refined_text_above_or_below_moves_nothing_for_who_scrolled_up(
    open_wired: Callable[..., Wire], logged_in_page: Page
) -> None:
    page = logged_in_page
    wire = open_wired(finals=60)
    for _ in range(20):
        wire.final(SENTENCE)
    page.locator(".captions-scroll").hover()
    page.mouse.wheel(0, -900)
    expect(page.locator(".captions-back")).to_be_visible()
    page.evaluate(AT_REST)
    before = tops(page)
    seen = [number for number, top in enumerate(before) if 100 < top < 600]
    assert len(seen) > 2
    for text in (LONGER, SHORTER):
        for utterance in (seen[0] - 3, seen[-1] + 5):
            wire.refined(utterance, text)
            after = tops(page)
            assert [after[number] for number in seen] == pytest.approx(
                [before[number] for number in seen], abs=0.6
            )


def test_a_row_that_was_held_takes_its_own_height_once_it_has_left_the_screen(
    open_wired: Callable[..., Wire], logged_in_page: Page
) -> None:
    page = logged_in_page
    page.set_viewport_size({"width": 390, "height": 800})
    wire = open_wired(finals=20)
    wire.final(SENTENCE)
    wire.refined(20, SHORTER)
    row = page.locator(".captions-list .caption").nth(20)
    held = row.bounding_box()
    for _ in range(6):
        wire.partial(SENTENCE)
        grown = page.locator(".captions-partial .caption-text").bounding_box()
        wire.final(SENTENCE)
        assert grown is not None
        assert tops(page)[-1] == pytest.approx(grown["y"], abs=0.6)
    free = row.bounding_box()
    assert held is not None
    assert free is not None
    assert free["height"] < held["height"] - 20


CLOSE_AN_UTTERANCE = """
import redis
from asr_engine.backends.scripted import encode_blocks
from asr_engine.protocol import EVENTS_KEY, encode
from tests.fakes.live import final, put_on_disk
from transcription.models import LiveSession
from transcription.services.live_sessions import start_live_session
from webapp.config import site_settings

session = start_live_session(session=LiveSession.objects.get(id="{session_id}"))
put_on_disk(session, encode_blocks(range(9)))
with redis.Redis.from_url(site_settings().broker_url) as broker:
    broker.xadd(EVENTS_KEY, {{"e": encode(final(session, 0, "What the live pass heard."))}})
"""


def test_what_the_live_pass_misheard_is_mended_on_the_open_page(
    server: Server, logged_in_page: Page, session_path: str
) -> None:
    """Through recorder, worker and socket: the utterance's audio holds other words."""
    logged_in_page.goto(session_path)
    expect(logged_in_page.locator(".captions-empty")).to_be_visible()
    session_id = session_path.rstrip("/").rsplit("/", maxsplit=1)[-1]
    server.manage("shell", "-c", CLOSE_AN_UTTERANCE.format(session_id=session_id))
    captions = logged_in_page.locator(".captions-list .caption-text")
    expect(captions).to_have_text("w0 w1 w2 w3 w4 w5 w6 w7 w8", timeout=60_000)
    expect(captions).to_have_class("caption-text is-refined")


def test_a_screen_reader_hears_new_finals_alone(
    open_wired: Callable[..., Wire], logged_in_page: Page
) -> None:
    wire = open_wired(finals=10)
    heard = logged_in_page.locator("[aria-live]").and_(logged_in_page.locator(".captions-heard"))
    expect(heard).to_be_empty()  # what was said before is for reading
    wire.partial("Good morn")
    expect(heard).to_be_empty()
    wire.final("Good morning.")
    wire.refined(10, "Good morning!")  # is not said again
    wire.final("大家早上好。")
    assert heard.locator("p").all_inner_texts() == ["Good morning.", "大家早上好。"]
    assert heard.locator("p").last.get_attribute("lang") == "zh"
    expect(logged_in_page.locator("[aria-live] .captions-partial")).to_have_count(0)


def test_how_captions_look_is_remembered_by_the_browser(
    open_wired: Callable[..., Wire], logged_in_page: Page
) -> None:
    open_wired(finals=3)
    scroll = logged_in_page.locator(".captions-scroll")
    looks = """(element) => {
        const { fontSize, lineHeight, color } = getComputedStyle(element);
        return [fontSize, lineHeight, color];
    }"""
    plain = scroll.evaluate(looks)
    logged_in_page.keyboard.press("+")
    logged_in_page.locator(".live-tools summary").click()
    logged_in_page.get_by_role("button", name="Wide").click()
    logged_in_page.get_by_role("button", name="Yellow").click()
    expect(scroll).to_have_css("color", "rgb(255, 230, 0)")
    chosen = scroll.evaluate(looks)
    assert [now != then for now, then in zip(chosen, plain, strict=True)] == [True] * 3, chosen
    logged_in_page.reload()
    assert scroll.evaluate(looks) == chosen


# A room's screen ----------------------------------------------------------------------------------

ROOM_LINES = ".room-lines > p"


def rows(page: Page) -> list[str]:
    return page.locator(ROOM_LINES).all_inner_texts()


@pytest.mark.parametrize("size", [(1280, 800), (1920, 1080)])
def test_a_room_s_lines_are_few_short_and_shift_whole(
    open_wired: Callable[..., Wire], logged_in_page: Page, size: tuple[int, int]
) -> None:
    width, height = size
    logged_in_page.set_viewport_size({"width": width, "height": height})
    wire = open_wired("room/", finals=20)
    before = rows(logged_in_page)
    assert len(before) == 3
    for count in range(1, len(WORDS) + 1):
        wire.partial(" ".join(WORDS[:count]))
        now = rows(logged_in_page)
        assert all(len(line) <= 42 for line in now)
        # All but the last written line stand where they stood, or one row higher.
        written = len([line for line in before if line])
        is_still = now[: written - 1] == before[: written - 1]
        has_shifted = now[: written - 1] == before[1:written]
        assert is_still or has_shifted, (before, now)
        before = now
    wire.final(SENTENCE)
    assert rows(logged_in_page) == before
    block = logged_in_page.locator(".room-lines").bounding_box()
    assert block is not None
    assert block["y"] >= height * 0.6  # the lower part
    assert block["x"] + block["width"] <= width
    letters = logged_in_page.locator(ROOM_LINES).first.evaluate(
        "(row) => parseFloat(getComputedStyle(row).fontSize)"
    )
    assert 0.05 * height <= letters <= 0.08 * height
    overflow = "(row) => row.scrollWidth - row.clientWidth"
    assert max(row.evaluate(overflow) for row in logged_in_page.locator(ROOM_LINES).all()) <= 0
    expect(logged_in_page.locator(".room-title")).to_have_text("Weekly meeting")
    expect(logged_in_page.locator(".live-state-words")).to_have_text("Live")


def test_refined_text_keeps_its_rows_in_a_room_or_shifts_the_lines_whole(
    open_wired: Callable[..., Wire], logged_in_page: Page
) -> None:
    logged_in_page.set_viewport_size({"width": 1280, "height": 800})
    wire = open_wired("room/", finals=20)
    first = rows(logged_in_page)[0]
    assert first == "Sentence 17 of what was said."
    wire.refined(17, "Sentence seventeen, I said.")
    others = ["Sentence 18 of what was said.", "Sentence 19 of what was said."]
    assert rows(logged_in_page) == ["Sentence seventeen, I said.", *others]
    expect(logged_in_page.locator(ROOM_LINES).first).to_have_class("is-refined")
    wire.refined(18, f"Sentence eighteen, I said. {others[1]}")
    now = rows(logged_in_page)
    assert now[0].startswith("Sentence eighteen")  # a line more: all moved up by one
    assert now[2] == others[1]
    wire.refined(18, "Sentence eighteen.")
    assert rows(logged_in_page) == ["Sentence eighteen.", "", others[1]]
    wire.partial("What comes next")
    assert rows(logged_in_page) == ["Sentence eighteen.", others[1], "What comes next"]


def test_each_line_tells_the_language_that_it_is_in(
    open_wired: Callable[..., Wire], logged_in_page: Page
) -> None:
    """The session's own was chosen before anybody spoke; the second pass may hear another."""
    for path, lines in (("", ".captions-list .caption-text"), ("room/", ROOM_LINES)):
        wire = open_wired(path)
        wire.final("Bonjour à tous.", language="fr")
        wire.final("大家早上好。", language="zh")
        wire.final("Good morning.", language="zh")
        told = logged_in_page.locator(lines)
        languages = "(lines) => lines.slice(0, 3).map((line) => line.lang)"
        assert told.evaluate_all(languages) == ["fr", "zh", "en"]
        wire.refined(1, "Da jia zao.", language="en")
        wire.refined(2, "早上好。", language="zh")
        assert told.evaluate_all(languages) == ["fr", "en", "zh"]


@pytest.mark.parametrize(
    ("account", "shown"), [("Asia/Tokyo", "12:41 AM"), ("", "3:41 PM")], ids=["account", "browser"]
)
def test_times_of_captions_are_in_the_account_s_zone_else_in_the_browser_s(
    browser: Browser, server: Server, session_path: str, account: str, shown: str
) -> None:
    context = browser.new_context(
        base_url=server.base_url, timezone_id="UTC", locale="en-US", reduced_motion="reduce"
    )
    let_in(context, server)
    page = context.new_page()
    at = datetime(2026, 11, 30, 15, 41, tzinfo=UTC).timestamp() * 1000
    answer = {"state": "live", "clock": [[0, at]], "recording": None}
    page.route("**/status/", lambda route: route.fulfill(json=answer))
    try:
        choose_zone(page, account)
        wire = Wire(page)
        page.goto(session_path)
        wire.begin(1)
        expect(page.locator(".caption-time").first).to_have_text(
            re.compile(shown.replace(" ", r"\s"))
        )
    finally:
        choose_zone(page, "")
        context.close()


def choose_zone(page: Page, zone: str) -> None:
    page.goto("/profile/")
    page.get_by_label("Time zone").select_option(zone)
    page.get_by_role("button", name="Save").first.click()
    expect(page.get_by_text("Your profile is saved.")).to_be_visible()


def test_a_room_is_run_by_keys_and_remembered(
    open_wired: Callable[..., Wire], logged_in_page: Page
) -> None:
    logged_in_page.add_init_script(
        "window.locks = []; Object.defineProperty(navigator, 'wakeLock', {value: {request:"
        " async (kind) => { window.locks.push(kind); return { release() {} }; }}});"
    )
    wire = open_wired("room/", finals=5)
    assert logged_in_page.evaluate("window.locks") == ["screen"]
    page = logged_in_page
    room = page.locator(".room")
    looks = "(room) => [getComputedStyle(room).backgroundColor, room.dataset.size]"
    dark = room.evaluate(looks)
    page.keyboard.press("d")
    page.keyboard.press("+")
    page.keyboard.press("+")
    wire.settle()
    light = room.evaluate(looks)
    assert light[0] != dark[0]
    expect(page.locator(ROOM_LINES)).to_have_count(2)  # larger, so fewer
    page.keyboard.press("f")
    full_screen = page.locator('[data-act="fullscreen"]')
    expect(full_screen).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("f")
    expect(full_screen).to_have_attribute("aria-pressed", "false")
    page.reload()
    assert room.evaluate(looks) == light


def test_a_room_hides_pointer_and_tools_until_they_are_wanted(
    open_wired: Callable[..., Wire], logged_in_page: Page
) -> None:
    open_wired("room/", finals=5)
    body, tools = logged_in_page.locator("body"), logged_in_page.locator(".room-tools")
    expect(body).to_have_css("cursor", "none")
    expect(tools).to_have_css("opacity", "0")
    logged_in_page.mouse.move(50, 60)
    expect(body).not_to_have_css("cursor", "none")
    expect(tools).to_have_css("opacity", "1")


def test_a_room_says_how_things_stand(
    open_wired: Callable[..., Wire], logged_in_page: Page
) -> None:
    wire = open_wired("room/")
    said = logged_in_page.locator(".room-empty")
    expect(said).to_have_text("Captions appear here as soon as somebody speaks.")
    wire.final("Good morning.")
    expect(said).to_be_hidden()
    wire.say(type="state", state="waiting")
    expect(said).to_contain_text("The speaker's connection is lost.")
    wire.say(type="state", state="ended")
    expect(said).to_have_text("The session has ended.")
    assert rows(logged_in_page)[0] == "Good morning."


def test_over_a_broadcast_there_is_nothing_but_lines(
    open_wired: Callable[..., Wire], logged_in_page: Page
) -> None:
    open_wired("room/?transparent=1", finals=5)
    for selector in ("html", "body", ".room"):
        expect(logged_in_page.locator(selector)).to_have_css("background-color", "rgba(0, 0, 0, 0)")
    expect(logged_in_page.locator(".room-header")).to_be_hidden()
    expect(logged_in_page.locator(".room-tools")).to_be_hidden()
    expect(logged_in_page.locator(ROOM_LINES).first).to_have_css("color", "rgb(255, 255, 255)")


# A link -------------------------------------------------------------------------------------------


@pytest.fixture
def guest(browser: Browser, server: Server) -> Iterator[BrowserContext]:
    """Somebody who has no account."""
    context = browser.new_context(base_url=server.base_url, reduced_motion="reduce")
    context.set_default_timeout(15_000)
    yield context
    context.close()


def test_a_guest_reads_by_a_link_until_it_is_withdrawn(
    server: Server, logged_in_page: Page, session_path: str, guest: BrowserContext
) -> None:
    owner = logged_in_page
    owner.goto(session_path)
    owner.get_by_role("link", name="Share").click()
    owner.get_by_role("button", name="Make a link").click()
    address = owner.get_by_role("textbox", name="The new link").input_value()
    token = address.rstrip("/").rsplit("/", maxsplit=1)[-1]

    page = guest.new_page()
    asked: list[tuple[str, str | None]] = []
    page.on("request", lambda request: asked.append((request.url, request.headers.get("referer"))))
    page.on("websocket", lambda socket: asked.append((socket.url, None)))
    page.goto(address)
    expect(page.locator(".captions-empty")).to_contain_text("The speaker has not started yet")
    expect(page.locator(".live-state-words")).to_have_text("Not started yet")
    page.keyboard.press("r")
    page.wait_for_url(re.compile(r"/room/$"))
    expect(page.locator(".room-empty")).to_contain_text("The speaker has not started yet")
    assert any("?by=link" in url for url, _ in asked)
    for url, referrer in asked:
        is_own_page = re.fullmatch(rf"{re.escape(address)}(room/|status/)?", url) is not None
        assert token not in url or is_own_page
        assert token not in (referrer or "")

    owner.goto(session_path + "share/")
    owner.get_by_role("button", name="Withdraw").click()
    expect(page.locator(".room-empty")).to_have_text(
        "This link was withdrawn by the person who made it."
    )
    expect(page.locator(".live-state-words")).to_have_text("Closed")
    page.goto(address)
    expect(page.get_by_role("heading", name="These captions are closed")).to_be_visible()
    assert token not in server.log_path.read_text()
    assert "/s/[private]" in server.log_path.read_text()
