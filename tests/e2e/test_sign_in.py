"""Coming in, in a real browser: an invitation, a passkey, an authenticator app, and lost ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.e2e.conftest import Server, let_in, log_in
from tests.fakes.authenticator_app import code_of

pytestmark = pytest.mark.browser
PASSWORD = "dora and her words"
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest.fixture
def administrator(context: BrowserContext, server: Server) -> Page:
    let_in(context, server)
    return context.new_page()


@pytest.fixture
def visitor(browser: Browser, server: Server) -> Iterator[Page]:
    """Another person's browser, on a device that can keep passkeys."""
    context = browser.new_context(base_url=server.base_url, reduced_motion="reduce")
    context.set_default_timeout(15_000)
    page = context.new_page()
    device = context.new_cdp_session(page)
    device.send("WebAuthn.enable")
    device.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
    yield page
    context.close()


def invite(page: Page, email: str, name: str) -> str:
    """The link that the administrator copies, who then looks at the person's page."""
    page.goto("/administration/people/")
    page.get_by_label("E-mail address").fill(email)
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Invite").click()
    link = page.get_by_label("The link to choose a password").input_value()
    page.goto("/administration/people/")
    page.get_by_role("link", name=name).click()
    return link


def come_by_link(page: Page, link: str, email: str) -> None:
    page.goto(link)
    page.get_by_label("New password", exact=True).fill(PASSWORD)
    page.get_by_label("New password again").fill(PASSWORD)
    page.get_by_role("button", name="Save password").click()
    page.get_by_role("link", name="Log in").click()
    page.get_by_label("E-mail address").fill(email)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Log in", exact=True).click()
    page.wait_for_url(lambda url: "/accounts/" not in url)


def confirm(page: Page) -> None:
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()


def log_out(page: Page) -> None:
    page.goto("/accounts/logout/")
    page.get_by_role("main").get_by_role("button", name="Log out").click()
    page.wait_for_url("**/accounts/login/**")


def test_invited_person_comes_in_and_from_then_on_by_a_passkey_alone(
    administrator: Page, visitor: Page
) -> None:
    link = invite(administrator, "doreen@example.org", "Doreen")
    come_by_link(visitor, link, "doreen@example.org")
    visitor.goto("/accounts/2fa/webauthn/add/")
    confirm(visitor)
    visitor.get_by_label("Name", exact=True).fill("My laptop")
    visitor.get_by_role("button", name="Add it").click()
    expect(visitor.get_by_role("heading", name="Recovery codes")).to_be_visible()
    visitor.goto("/accounts/2fa/webauthn/")
    expect(visitor.get_by_text("Logs you in by itself")).to_be_visible()
    log_out(visitor)
    visitor.get_by_role("button", name="Log in by a passkey").click()
    visitor.wait_for_url(lambda url: "/accounts/" not in url)
    visitor.goto("/profile/")
    expect(visitor.get_by_text("Passkey or security key")).to_be_visible()
    expect(visitor.get_by_text("This browser")).to_be_visible()
    # Disabled, the same key opens nothing.
    administrator.reload()
    administrator.get_by_text("Disable Doreen …").click()
    administrator.get_by_role("button", name="Disable Doreen", exact=True).click()
    expect(administrator.get_by_text("logged out everywhere")).to_be_visible()
    visitor.reload()
    visitor.get_by_role("button", name="Log in by a passkey").click()
    expect(visitor.get_by_role("heading", name="This account is disabled")).to_be_visible()


def test_lost_authenticator_app_is_reset_by_an_administrator(
    administrator: Page, visitor: Page, server: Server
) -> None:
    link = invite(administrator, "erik@example.org", "Erik")
    come_by_link(visitor, link, "erik@example.org")
    visitor.goto("/accounts/2fa/totp/activate/")
    confirm(visitor)
    secret = visitor.locator(".totp-key").inner_text()
    visitor.get_by_label("Code").fill(code_of(secret))
    visitor.get_by_role("button", name="Set up the app").click()
    expect(visitor.locator(".codes li")).to_have_count(10)
    recovery_code = visitor.locator(".codes li").first.inner_text()
    log_out(visitor)
    log_in(visitor, server, email="erik@example.org", password=PASSWORD)
    expect(visitor.get_by_role("heading", name="Your second factor")).to_be_visible()
    visitor.get_by_label("Code").fill(recovery_code)
    visitor.get_by_role("button", name="Log in", exact=True).click()
    visitor.wait_for_url(lambda url: "/accounts/" not in url)
    log_out(visitor)
    administrator.reload()
    administrator.get_by_text("Reset the second factors …").click()
    administrator.get_by_role("button", name="Reset the second factors of Erik").click()
    expect(administrator.get_by_text("by the password alone")).to_be_visible()
    log_in(visitor, server, email="erik@example.org", password=PASSWORD)
    visitor.wait_for_url(lambda url: "/accounts/" not in url)


def test_a_browser_that_gets_no_key_says_so_and_the_password_still_works(
    page: Page, server: Server
) -> None:
    device = page.context.new_cdp_session(page)
    device.send("WebAuthn.enable")
    without = {**AUTHENTICATOR, "isUserVerified": False}
    device.send("WebAuthn.addVirtualAuthenticator", {"options": without})
    page.goto("/accounts/login/")
    page.get_by_role("button", name="Log in by a passkey").click()
    expect(page.get_by_text("The browser got no key")).to_be_visible()
    log_in(page, server)
