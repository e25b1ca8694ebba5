"""Every task of an administrator, done in a real browser with nothing but keys.

What Tab does not reach, or has the focus without showing it, cannot be used so.
"""

from __future__ import annotations

import json
import re
import secrets
from pathlib import Path
from uuid import UUID

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Server
from tests.fakes.waiting import wait_until

pytestmark = pytest.mark.browser
WAIT_MS = 60_000
MOST_TABS = 150
_FOCUSED = """() => {
  const here = document.activeElement;
  const words = here.labels?.[0]?.innerText || here.getAttribute("aria-label") || here.innerText;
  const name = (words || here.value || "").replace(/\\s+(?=[:,.])/g, "").replace(/\\s+/g, " ");
  return [name.trim(), here.matches(":focus-visible")];
}"""


class Keyboard:
    """The keys of a page, and what has the focus by its name. Names are regular expressions."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def reach(self, name: str) -> None:
        """Tab on until what is called so has the focus, and shows it."""
        passed = []
        for _ in range(MOST_TABS):
            self.page.keyboard.press("Tab")
            focused, is_visible = self.page.evaluate(_FOCUSED)
            if re.fullmatch(name, focused):
                assert is_visible, f"nobody sees that “{focused}” has the focus"
                return
            passed.append(focused)
        raise AssertionError(f"Tab does not reach “{name}”, but {list(dict.fromkeys(passed))}")

    def press(self, name: str) -> None:
        """What leads to another page, or to this one anew."""
        self.reach(name)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")

    def open(self, name: str) -> None:
        """What opens on this page, or is downloaded."""
        self.reach(name)
        self.page.keyboard.press("Enter")

    def write(self, name: str, text: str) -> None:
        self.reach(name)
        self.page.keyboard.press("ControlOrMeta+A")
        self.page.keyboard.type(text)

    def choose(self, name: str, option: str) -> None:
        """Of a closed list: its first letters choose."""
        self.reach(name)
        self.page.keyboard.type(option)

    def tick(self, name: str) -> None:
        self.reach(name)
        self.page.keyboard.press("Space")

    def go(self, entry: str) -> None:
        """By the menu of the person and the navigation of the administration."""
        self.open(r".*Menu of .*")
        self.press("Administration")
        if entry != "Overview":
            self.press(entry)
        expect(self.page.locator("h1")).to_have_text(entry)

    def is_told(self, text: str) -> None:
        expect(self.page.locator("#messages")).to_contain_text(text, timeout=WAIT_MS)


@pytest.fixture
def keys(logged_in_page: Page) -> Keyboard:
    return Keyboard(logged_in_page)


@pytest.fixture(scope="module")
def mark() -> str:
    """In the names of what these tests make, on a server that others use too."""
    return secrets.token_hex(3)


def test_people_and_teams(keys: Keyboard, mark: str) -> None:
    page, email = keys.page, f"{mark}@example.org"
    keys.go("People")
    keys.write("E-mail address", email)
    keys.choose("Role", "Staff")
    keys.press("Invite")
    expect(page.locator("h1")).to_have_text(email)
    keys.press("Make a link to choose a password")
    expect(page.get_by_label("The link to choose a password")).to_have_value(re.compile("http"))
    keys.choose("Role of .*", "Administrator")
    keys.press("Save role")
    expect(page.locator(".badge-accent")).to_have_text("Administrator")
    keys.open("End all sessions …")
    keys.press("End all sessions of .*")
    keys.open("Disable .* …")
    keys.press("Disable [^…]*")
    expect(page.locator(".badge-danger")).to_have_text("Disabled")
    keys.press("Enable .*")
    expect(page.locator(".badge-danger")).to_have_count(0)
    keys.press("Teams")
    keys.write("Name", f"Team {mark}")
    keys.press("Make team")
    expect(page.locator("h1")).to_have_text(f"Team {mark}")
    keys.write("E-mail address of a colleague", email)
    keys.press("Add")
    keys.press(f"Remove {email}")
    expect(page.get_by_text("Nobody yet.")).to_be_visible()
    keys.write("Name", f"Crew {mark}")
    keys.press("Save name")
    keys.open(f"Delete Crew {mark} …")
    keys.press(f"Delete the team Crew {mark}")
    expect(page.locator("h1")).to_have_text("Teams")
    expect(page.get_by_text(f"Crew {mark}").last).not_to_have_role("link")


def test_tools_and_terms(keys: Keyboard, mark: str) -> None:
    page = keys.page
    keys.go("Tools")
    keys.write("Name", f"Exchange {mark}")
    keys.press("Make a service account")
    expect(page.locator("h1")).to_contain_text(f"Exchange {mark}")
    keys.write("What is it for.*", "Calls")
    keys.tick("Start, speak into.*")
    keys.press("Make a token")
    expect(page.get_by_role("textbox", name="The new token")).to_have_value(re.compile("^tr_"))
    keys.press("Revoke Calls")
    keys.press("Revoke it")
    expect(page.locator("main")).to_contain_text("Revoked")
    keys.press("Names and terms")
    keys.write("Name or term", f"Helstone {mark}")
    keys.press("Add")
    keys.is_told(f"“Helstone {mark}” is added.")
    keys.press(f"Delete Helstone {mark}")
    keys.is_told("is deleted.")


def test_retention(keys: Keyboard) -> None:
    page = keys.page
    keys.go("Retention")
    keys.press("Change … the rules of the organisation")
    keys.write("Failed transcriptions", "400")
    keys.press("See what it would do")
    expect(page.locator("h1")).to_have_text("What the change would do")
    keys.press("Let it take effect")
    expect(page.locator(".rules-waiting")).to_contain_text("400 days")
    keys.press("Take back the change for the organisation")
    expect(page.locator(".rules-waiting")).to_have_count(0)


def test_jobs_and_a_hold(keys: Keyboard, server: Server) -> None:
    page = keys.page
    token = next(cookie for cookie in page.context.cookies() if cookie["name"] == "csrftoken")
    page.request.post("/sample/", headers={"X-CSRFToken": token["value"]})
    query = "SELECT recording_id FROM transcription_job WHERE state = 'done'"
    wait_until(lambda: server.rows(query), timeout_s=60, what="the sample is transcribed")
    keys.go("Jobs")
    keys.press(r"Ended \d+")
    keys.press("Transcribe again: Sample.*")
    keys.is_told("is waiting to be transcribed again.")
    keys.press("Retention")
    (recording,) = server.rows(query)[0]
    address = f"{server.base_url}/recordings/{UUID(recording)}/"
    keys.write("Address of the recording", address)
    keys.write("Reason", "A court asks for it")
    keys.press("Put on hold")
    expect(page.get_by_text("A court asks for it")).to_be_visible()
    keys.press("Release .*")
    expect(page.get_by_text("A court asks for it")).to_have_count(0)


def test_engines(keys: Keyboard, server: Server) -> None:
    page = keys.page
    keys.go("Engines")
    engine = page.locator(".engine").first
    try:
        keys.press("Drain engine-1")
        keys.is_told("takes no more")
        expect(engine).to_contain_text("Empty: it may be stopped", timeout=WAIT_MS)
        # The page asked again by itself meanwhile, and took no focus away.
        keys.press("Let it serve again: engine-1")
        expect(engine).to_contain_text("Serving", timeout=WAIT_MS)
    finally:
        if engine.get_by_text("Serving").count() == 0:  # other tests need the engine
            server.manage("engines", "undrain", "engine-1")


def test_audit(keys: Keyboard, tmp_path: Path) -> None:
    page = keys.page
    keys.go("Audit")
    keys.write("Person", "admin@")
    keys.choose("Act", "Logged in")
    keys.press("Search")
    expect(page.locator("#entries-title")).to_have_text("What was found")
    expect(page.locator(".rows > li").first).to_contain_text("logged in")
    with page.expect_download() as download:
        keys.open("JSON download")
    path = tmp_path / "audit.json"
    download.value.save_as(path)
    assert {entry["act"] for entry in json.loads(path.read_text())} == {"logged_in"}
    keys.press("Show all")
    expect(page.locator("#entries-title")).to_have_text("Latest")
    expect(page.locator(".rows > li").first).to_contain_text("exported")
