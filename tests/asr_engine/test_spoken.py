"""What is spoken of a text has neither case nor punctuation, in any script."""

from __future__ import annotations

import pytest

from asr_engine.spoken import spoken_units


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("Don’t stop, O'Brien!", ["don't", "stop", "o'brien"]),
        ("万达 uses GPT-4。", ["万", "达", "uses", "gpt", "4"]),
        ("ＩＢＭ", ["ibm"]),
        ("서울 Straße", ["서", "울", "strasse"]),
        ("… — !", []),
        ("", []),
    ],
)
def test_units(text: str, units: list[str]) -> None:
    assert spoken_units(text) == units
