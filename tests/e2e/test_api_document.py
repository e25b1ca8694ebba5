"""Every example of `docs/api.md`, as it stands there, in a shell against a running server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from asr_engine.backends.scripted import encode_blocks, script
from tests.e2e.conftest import ROOT, Server
from tests.fakes.audio import wav_bytes
from webapp.accounts.models import Scope

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
ANYTHING = "…"


def examples() -> list[tuple[str, str, str]]:
    """Each shell block, and the kind and the text of the block right after it."""
    text = (ROOT / "docs" / "api.md").read_text()
    blocks = re.findall(
        r"^```sh\n(.*?)^```\n(?:```(\w+)\n(.*?)^```$)?", text, re.MULTILINE | re.DOTALL
    )
    assert text.count("```sh\n") == len(blocks)
    return blocks


class Reader:
    """Somebody who types the examples: the ids of the document stand for those of the server."""

    def __init__(self) -> None:
        self.ids: dict[str, str] = {}

    def real(self, text: str) -> str:
        return UUID.sub(lambda found: self.ids.get(found[0], found[0]), text)

    def compare(self, said: Any, got: Any, where: str = "answer") -> None:
        """What the document says is there; it may leave things out."""
        if isinstance(said, dict):
            for name, value in said.items():
                assert name in got, f"{where}.{name}"
                self.compare(value, got[name], f"{where}.{name}")
        elif isinstance(said, list):
            assert len(got) >= len(said), where
            assert bool(got) == bool(said), where
            for index, value in enumerate(said):
                self.compare(value, got[index], f"{where}[{index}]")
        elif isinstance(said, str) and UUID.fullmatch(said):
            assert self.ids.setdefault(said, got) == got, where
        elif isinstance(said, str) and where.endswith("_at"):
            assert datetime.fromisoformat(got).tzinfo is not None, where
        elif said == ANYTHING:
            assert isinstance(got, str), where
        else:
            assert got == said, where


def test_every_example_runs_and_answers_as_the_document_says(
    server: Server, tmp_path: Path
) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    scopes = [option for scope in Scope for option in ("--scope", scope.value)]
    secret = server.manage("createtoken", server.email, *scopes).split()[-1]
    talk = wav_bytes(encode_blocks(script(120, utterance_words=10)))
    (tmp_path / "meeting.wav").write_bytes(talk)
    environment = {**server.environment, "SERVER": server.base_url, "TOKEN": secret}
    reader = Reader()
    for command, kind, said in examples():
        ran = subprocess.run(
            ["/bin/sh", "-euc", reader.real(command)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (0, ""), command
        if kind == "json":
            reader.compare(json.loads(said), json.loads(ran.stdout))
        else:
            for line in said.splitlines():
                start, is_longer, _ = line.partition(ANYTHING)
                got = ran.stdout.splitlines()
                assert line in got or (is_longer and any(each.startswith(start) for each in got))


def test_the_page_of_the_api_works_under_the_content_policy_and_in_the_dark(
    logged_in_page: Page,
) -> None:
    page, complaints = logged_in_page, []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.emulate_media(color_scheme="dark")
    page.goto("/api/v1/docs")
    page.locator("#operations-recordings-list_recordings .opblock-summary-control").click()
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute").click()
    expect(page.locator(".live-responses-table .response-col_status").last).to_have_text("200")
    assert page.locator(".opblock").count() > 50
    text = page.locator(".opblock-summary-description").first
    expect(page.locator("#api-docs")).to_have_css("background-color", "rgb(28, 32, 34)")
    expect(text).to_have_css("color", "rgb(228, 230, 230)")
    assert complaints == []
