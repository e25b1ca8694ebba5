"""What the documents name exists: pages, sections, commands, settings, make targets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

from tests.docs.settings_reference import GROUPS, ROOT, name_of

DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def anchors(text: str) -> set[str]:
    """GitHub's anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    missing = []
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if target.startswith(("http:", "https:")):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        if not there.exists() or (anchor and anchor not in anchors(there.read_text())):
            missing.append(target)
    assert missing == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_commands_settings_and_targets_exist(path: Path) -> None:
    text = path.read_text()
    commands = set(re.findall(r"manage\.py ([a-z_]+)", text)) - get_commands().keys()
    fields = {name_of(prefix, field) for _, cls, prefix in GROUPS for field in cls.model_fields}
    settings = set(re.findall(r"\b((?:TRANSCRIBE|ASR)_[A-Z_]*[A-Z])\b", text)) - fields
    makefile = (ROOT / "Makefile").read_text()
    named = re.findall(r"^(?:ExecStart=)?make ([a-z-]+)|`make ([a-z-]+)", text, flags=re.MULTILINE)
    targets = {a or b for a, b in named if f"\n{a or b}:" not in makefile}
    assert (commands, settings, targets) == (set(), set(), set())
