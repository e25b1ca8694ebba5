"""A page as people use it who have no mouse."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

WAIT_MS = 60_000
MOST_TABS = 150
_FOCUSED = """() => {
  const here = document.activeElement;
  if (here === document.body) return ["", false];
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

    def choose_in(self, menu: str, item: str) -> None:
        """What opens on this page from a menu of it."""
        self.open(menu)
        self.open(item)

    def turn_to(self, entry: str) -> None:
        """By the menu of the person."""
        self.open(r".*Menu of .*")
        self.press(entry)

    def go(self, entry: str) -> None:
        """By the menu of the person and the navigation of the administration."""
        self.turn_to("Administration")
        if entry != "Overview":
            self.press(entry)
        expect(self.page.locator("h1")).to_have_text(entry)

    def is_told(self, text: str) -> None:
        expect(self.page.locator("#messages")).to_contain_text(text, timeout=WAIT_MS)
