"""Colours of the design system, in light and in dark: text can be read (WCAG 2.2, 1.4.3)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

STYLES = (Path(__file__).parents[2] / "static" / "css" / "site.css").read_text()
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
