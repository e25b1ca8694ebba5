"""Colours of the design system, in light and in dark: text can be read (WCAG 2.2, 1.4.3)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SHEETS = Path(__file__).parents[2] / "static" / "css"
STYLES = (SHEETS / "site.css").read_text()
COLOURS = {
    name: (light, dark)
    for name, light, dark in re.findall(
        r"--([a-z0-9-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", STYLES
    )
}
GROUNDS = ("ground", "surface", "sunken", "raised")
AA, AAA, SIGN = 4.5, 7.0, 3.0

PAIRS = [
    *((text, ground, AA) for text in ("ink-quiet", "accent", "danger") for ground in GROUNDS),
    *(("ink-faint", ground, AA) for ground in ("ground", "surface")),
    *(("warning", ground, AA) for ground in GROUNDS),
    *(("ink", ground, AAA) for ground in (*GROUNDS, "highlight", "accent-soft")),
    *((f"speaker-{number}", "surface", AA) for number in range(1, 9)),
    ("on-accent", "accent", AA),
    ("on-accent", "accent-strong", AA),
    ("on-danger", "danger", AA),
    ("accent-strong", "accent-soft", AA),
    ("warning", "warning-soft", AA),
    ("danger", "danger-soft", AA),
    ("ink", "warning-soft", AA),
    ("ink", "danger-soft", AA),
    ("ink-quiet", "danger-soft", AA),
    ("line-strong", "surface", SIGN),
    ("line-strong", "ground", SIGN),
]


CAPTION_RULE = re.compile(r"([^{}]+)\{([^{}]*--caption-ink:[^{}]*)\}")
CAPTION_COLOUR = re.compile(
    r"--caption-(ink|quiet|ground): (?:light-dark\((#\w+), (#\w+)\)|(#\w+)|var\(--([\w-]+)\))"
)


def caption_themes() -> dict[str, dict[str, tuple[str, str]]]:
    """The colours of captions, (light, dark), of each rule that sets them."""
    themes = {}
    for sheet in ("live.css", "room.css"):
        for selector, rule in CAPTION_RULE.findall((SHEETS / sheet).read_text()):
            found = {
                name: COLOURS[token] if token else (light or same, dark or same)
                for name, light, dark, same, token in CAPTION_COLOUR.findall(rule)
            }
            themes[f"{sheet} {selector.strip().splitlines()[-1].strip()}"] = found
    return themes


CAPTION_THEMES = caption_themes()


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(("text", "ground", "least"), PAIRS)
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_contrast(text: str, ground: str, least: float, theme: int) -> None:
    assert contrast(COLOURS[text][theme], COLOURS[ground][theme]) >= least


@pytest.mark.parametrize("name", CAPTION_THEMES)
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_captions_are_read_by_tired_eyes(name: str, theme: int) -> None:
    """Finals and partials, in every contrast that a reader can choose."""
    colours = {part: pair[theme] for part, pair in CAPTION_THEMES[name].items()}
    for part in ("ink", "quiet"):
        assert contrast(colours[part], colours["ground"]) >= AAA, part


def test_every_contrast_on_offer_is_looked_at() -> None:
    tools = (SHEETS.parents[1] / "templates" / "live" / "room.html").read_text()
    for value in re.findall(r'data-preference="contrast" data-value="(\w+)"', tools):
        for sheet in ("live.css", "room.css"):
            wanted = f'[data-contrast="{value}"]'
            rules = [name for name in CAPTION_THEMES if name.startswith(sheet) and wanted in name]
            assert rules or value == "normal", f"{sheet} {value}"


def test_captions_over_a_picture_are_read_on_white_and_on_black() -> None:
    rule = re.search(
        r"\.is-transparent \.room-lines > p \{[^}]*color: (#\w{6}); background: #000000(\w\w);",
        (SHEETS / "room.css").read_text(),
    )
    assert rule is not None
    veiled = round(255 * (1 - int(rule[2], 16) / 255))  # white behind the veil
    assert contrast(rule[1], f"#{veiled:02x}{veiled:02x}{veiled:02x}") >= AAA
