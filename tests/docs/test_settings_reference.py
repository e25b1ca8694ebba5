"""The pages about settings are those of the code."""

from __future__ import annotations

import pytest

from tests.docs.settings_reference import EXAMPLE, GROUPS, REFERENCE, example, reference

MEND = "run `python -m tests.docs.settings_reference`"


def test_reference_page_is_what_the_settings_classes_say() -> None:
    assert REFERENCE.read_text() == reference(), MEND


def test_example_is_what_the_settings_classes_say() -> None:
    assert EXAMPLE.read_text() == example(), MEND


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: str(group[2]))
def test_every_setting_says_what_it_means(group: tuple[str, type, str]) -> None:
    fields = group[1].model_fields  # type: ignore[attr-defined]
    assert [name for name, field in fields.items() if not field.description] == []
