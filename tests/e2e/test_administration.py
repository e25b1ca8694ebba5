"""Every task of an administrator, and what the owner of a recording does with it, done in a real
browser with nothing but keys.

What Tab does not reach, or has the focus without showing it, cannot be used so.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import Server
from tests.e2e.keyboard import WAIT_MS, Keyboard
from tests.fakes.authenticator_app import code_of
from tests.fakes.waiting import wait_until

pytestmark = pytest.mark.browser
PASSWORD = "ida and her words"


@pytest.fixture
def keys(logged_in_page: Page) -> Keyboard:
    return Keyboard(logged_in_page)


@pytest.fixture(scope="module")
def mark() -> str:
    """In the names of what these tests make, on a server that others use too."""
    return secrets.token_hex(3)


@pytest.fixture
def colleague(browser: Browser, server: Server) -> Iterator[Keyboard]:
    """Another person's browser, nobody logged in."""
    context = browser.new_context(base_url=server.base_url, reduced_motion="reduce")
    context.set_default_timeout(15_000)
    yield Keyboard(context.new_page())
    context.close()


@contextlib.contextmanager
def held_up(server: Server, name: str) -> Iterator[None]:
    """That process does nothing meanwhile, so that what it is asked for waits."""
    process_id = server.process_id(name)
    assert process_id is not None
    os.kill(process_id, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process_id, signal.SIGCONT)


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


def test_tools_and_terms(keys: Keyboard, mark: str, tmp_path: Path) -> None:
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
    keys.press(f"Disable Exchange {mark}")
    expect(page.locator("h1")).to_contain_text("Disabled")
    keys.press(f"Enable Exchange {mark}")
    expect(page.locator("h1")).not_to_contain_text("Disabled")
    keys.press("Names and terms")
    keys.write("Name or term", f"Helstone {mark}")
    keys.press("Add")
    keys.is_told(f"“Helstone {mark}” is added.")
    keys.press(f"Delete Helstone {mark}")
    keys.is_told("is deleted.")
    keys.write("One a line", f"Okonkwo {mark}, 5\nFitzgerald {mark}")
    terms = tmp_path / "terms.csv"
    terms.write_text(f"Hinterberger {mark},4\n")
    with page.expect_file_chooser() as chooser:
        keys.open("Or a text or CSV file")
    chooser.value.set_files(terms)
    keys.press("Read the list")
    keys.is_told("3 added")


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
    recording = add_sample(page, server, server.email)
    keys.go("Jobs")
    keys.press(r"Ended \d+")
    with held_up(server, "jobs"):
        keys.press("Transcribe again: Sample.*")
        keys.is_told("is waiting to be transcribed again.")
        keys.press(r"Under way \d+")
        keys.press("Stop the transcription of Sample.*")
        keys.is_told("stops.")
    keys.press("Retention")
    address = f"{server.base_url}/recordings/{recording}/"
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
    expect(page.locator(".rows > li").first).to_contain_text("downloaded the audit log")


def test_what_a_colleague_owns_and_how_an_administrator_helps(
    keys: Keyboard, colleague: Keyboard, mark: str, server: Server
) -> None:
    email, title = f"ida-{mark}@example.org", f"Talk {mark}"
    come_in(keys, colleague, email)
    add_sample(colleague.page, server, email)
    name_recording(colleague, title)
    share(colleague)
    open_as_administrator(keys, title)
    expect_opening_is_seen(colleague, title)
    trash_and_restore(colleague, title)
    delete_for_ever(colleague, title)
    hear_of_it_elsewhere(colleague, f"Wiki {mark}")
    set_up_second_factor(colleague)
    take_away_second_factor_and_sessions(keys, colleague, email)


def come_in(administrator: Keyboard, colleague: Keyboard, email: str) -> None:
    administrator.go("People")
    administrator.write("E-mail address", email)
    administrator.press("Invite")
    administrator.press("Make a link to choose a password")
    link = administrator.page.get_by_label("The link to choose a password").input_value()
    colleague.page.goto(link)
    colleague.write("New password", PASSWORD)
    colleague.write("New password again", PASSWORD)
    colleague.press("Save password")
    colleague.press("Log in")
    colleague.write("E-mail address", email)
    colleague.write("Password", PASSWORD)
    colleague.press("Log in")


def add_sample(page: Page, server: Server, email: str) -> UUID:
    """A transcribed recording of the person; not by the button, which only an empty list has, and
    other tests share theirs with everybody."""
    token = next(cookie for cookie in page.context.cookies() if cookie["name"] == "csrftoken")
    page.request.post("/sample/", headers={"X-CSRFToken": token["value"]})
    query = """
        SELECT recording.id FROM transcription_job AS job
        JOIN transcription_recording AS recording ON recording.id = job.recording_id
        JOIN accounts_user AS owner ON owner.id = recording.owner_id
        WHERE job.state = 'done' AND recording.title LIKE 'Sample%' AND owner.email = ?
    """
    wait_until(lambda: server.rows(query, email), timeout_s=60, what="the sample is transcribed")
    return UUID(server.rows(query, email)[0][0])


def name_recording(owner: Keyboard, title: str) -> None:
    owner.page.goto("/")
    owner.press("Sample.*")
    owner.choose_in("More", "Rename")
    owner.write("Title", title)
    owner.press("Save title")
    owner.is_told("The new title is saved.")


def share(owner: Keyboard) -> None:
    owner.press("Share")
    owner.write("Find a person or a team by name", "admin")
    expect(owner.page.get_by_role("list", name="Found")).to_be_visible()
    owner.press("Let edit: .*")
    owner.is_told("can read and edit this now.")
    owner.press("Only let read: .*")
    owner.is_told("can read this now.")
    owner.press("Stop sharing with .*")
    owner.is_told("It is no longer shared with")
    owner.choose("Open for", "1 hour")
    owner.press("Make a link")
    expect(owner.page.get_by_role("textbox", name="The new link")).to_have_value(re.compile("http"))
    owner.press("Withdraw the link made .*")
    owner.is_told("The link is withdrawn.")


def open_as_administrator(administrator: Keyboard, title: str) -> None:
    page = administrator.page
    administrator.go("Jobs")
    administrator.press(r"Ended \d+")
    administrator.press(title)
    expect(page.locator("h1")).to_have_text(f"Open “{title}”?")
    administrator.write(r"Why do you need to open it\?", "Ida asked why it is short")
    administrator.press("Open this recording")
    expect(page.get_by_role("region", name="Transcript")).to_be_visible()
    administrator.press("Close it now")
    administrator.is_told(f"“{title}” is closed.")


def expect_opening_is_seen(owner: Keyboard, title: str) -> None:
    owner.press(title)
    expect(owner.page.locator("#openings")).to_contain_text("Ida asked why it is short")


def trash_and_restore(owner: Keyboard, title: str) -> None:
    move_to_trash(owner)
    owner.turn_to("Trash")
    owner.press(f"Restore {title}")
    expect(owner.page.locator("h1")).to_have_text(title)


def delete_for_ever(owner: Keyboard, title: str) -> None:
    move_to_trash(owner)
    owner.turn_to("Trash")
    owner.press(f"Delete … {title}")
    owner.press("Delete for ever")
    owner.is_told("is deleted for ever")
    expect(owner.page.locator("main")).to_contain_text("The trash is empty")


def move_to_trash(owner: Keyboard) -> None:
    owner.choose_in("More", "Delete recording")
    owner.press("Move to the trash")
    owner.is_told("is in the trash.")


def hear_of_it_elsewhere(owner: Keyboard, name: str) -> None:
    """By a webhook, which nobody hears: an answer of this very server is no success."""
    owner.turn_to("Profile")
    owner.press("Webhooks")
    owner.write("Name", name)
    owner.write("Address", owner.page.url)
    owner.tick("A transcript is ready.*")
    owner.press("Make the webhook")
    expect(owner.page.get_by_role("textbox", name="The secret")).to_have_value(re.compile("whsec_"))
    owner.press("Send a test")
    owner.is_told("A test is on its way.")
    owner.open("Make a new secret …")
    owner.press(f"Make a new secret for {name}")
    expect(owner.page.get_by_role("textbox", name="The secret")).to_have_value(re.compile("whsec_"))
    owner.open(f"Delete {name} …")
    owner.press(f"Delete the webhook {name}")
    owner.is_told("is deleted.")


def set_up_second_factor(owner: Keyboard) -> None:
    owner.turn_to("Profile")
    owner.press("Second factors and passkeys.*")
    owner.press("Set up an app")
    owner.write("Password", PASSWORD)
    owner.press("Confirm")
    owner.write("Code", code_of(owner.page.locator(".totp-key").inner_text()))
    owner.press("Set up the app")
    expect(owner.page.locator(".codes li")).to_have_count(10)


def take_away_second_factor_and_sessions(
    administrator: Keyboard, colleague: Keyboard, email: str
) -> None:
    page = administrator.page
    administrator.go("People")
    administrator.press(email)
    administrator.open("Reset the second factors …")
    administrator.press(f"Reset the second factors of {email}")
    administrator.is_told("logs in by the password alone")
    expect(page.get_by_text("Reset the second factors …")).to_have_count(0)
    administrator.open("End all sessions …")
    administrator.press(f"End all sessions of {email}")
    administrator.is_told("is logged out everywhere.")
    colleague.page.reload()
    expect(colleague.page.locator("h1")).to_have_text("Log in")
