"""The one list of languages."""

from __future__ import annotations

from transcription.languages import LANGUAGES, OFTEN_USED, language_choices, language_name


def test_every_language_is_offered_once() -> None:
    (detect, _), (_, often), (_, others) = language_choices()
    codes = [code for code, _ in [*often, *others]]  # type: ignore[misc]
    assert detect == ""
    assert sorted(codes) == sorted(LANGUAGES)
    assert [code for code, _ in often] == list(OFTEN_USED)  # type: ignore[misc]


def test_only_what_an_engine_declares_is_offered() -> None:
    assert language_choices({"en", "xx"}) == [
        ("", "Detect the language"),
        ("Often used", [("en", "English")]),
    ]


def test_languages_mix_only_where_they_may() -> None:
    assert ("mul", "Several languages, mixed") in language_choices(can_mix=True)
    assert ("mul", "Several languages, mixed") not in language_choices()


def test_names() -> None:
    assert language_name("zh") == "Chinese"
    assert language_name("") == ""
    assert language_name("xx") == "XX"
