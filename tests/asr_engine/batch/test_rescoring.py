"""A glossary mends what sounded like its phrases, and adds nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asr_engine.batch.rescoring import MAX_HOTWORDS, Rescorer
from asr_engine.ports import Candidate
from asr_engine.results import Word

HEARD = "You were always accusing people of being choppy at Houston."
NAMES = [("Helstone", 3.0), ("Merneptah", 3.0), ("Zau al Makan", 3.0)]


def candidate(text: str, mean: float = -0.3) -> Candidate:
    return Candidate(text, mean, 0.0, 1.0)


def chosen(rescorer: Rescorer, *candidates: Candidate) -> str:
    return candidates[rescorer.choose(candidates)].text


def hotwords(rescorer: Rescorer, *texts: str, language: str = "en") -> str:
    return rescorer.hotwords([candidate(text) for text in texts], language)


class Prefers:
    """A language model that likes one word."""

    def __init__(self, word: str) -> None:
        self._word = word

    def log_probability(self, units: Sequence[str]) -> float:
        return -10.0 * len(units) + (20.0 if self._word in units else 0.0)


# Spelling -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("and alan newberg, too.", "and Alan Newberg, too."),
        ("“NEWBERG” is alone", "“NEWBERG” is alone"),
        ("Zau al makan's", "Zau al makan's"),
        ("I like the o'neill.", "I like the O'Neill."),
        ("Term by term.", "Term by term."),
        ("— 42 —", "— 42 —"),
    ],
    ids=["name", "half a name", "possessive", "apostrophe", "no name", "no words"],
)
def test_names_get_the_capitals_that_they_are_known_with(said: str, written: str) -> None:
    rescorer = Rescorer([*NAMES, ("Alan Newberg", 3.0), ("O'Neill", 3.0), ("term", 3.0)])
    words = [Word(text, 0, 1) for text in said.split()]
    assert [word.text for word in rescorer.spelt(words)] == written.split()


# Choosing -----------------------------------------------------------------------------------------


def test_a_phrase_wins_over_a_text_that_is_a_little_more_probable() -> None:
    mended = candidate(HEARD.replace("Houston", "Helstone"), -0.4)
    assert chosen(Rescorer(NAMES), candidate(HEARD), mended) == mended.text
    assert chosen(Rescorer([]), candidate(HEARD), mended) == HEARD


def test_a_text_that_is_much_less_probable_stays_behind() -> None:
    mended = candidate(HEARD.replace("Houston", "Helstone"), -2.0)
    assert chosen(Rescorer(NAMES), candidate(HEARD), mended) == HEARD


def test_weight_says_how_much_less_probable() -> None:
    mended = candidate(HEARD.replace("Houston", "Helstone"), -0.6)
    assert chosen(Rescorer([("Helstone", 2.0)]), candidate(HEARD), mended) == HEARD
    assert chosen(Rescorer([("Helstone", 10.0)]), candidate(HEARD), mended) == mended.text
    assert chosen(Rescorer([("Helstone", 0.0)]), candidate(HEARD, -0.31), mended) == HEARD


def test_case_and_punctuation_hide_no_phrase() -> None:
    mended = candidate("tell me, zau-al makan!", -0.4)
    said = candidate("Tell me, sow al Macon!")
    assert chosen(Rescorer(NAMES), said, mended) == mended.text


@pytest.mark.parametrize(
    "leaked",
    [
        HEARD + " Merneptah.",  # the prompt, read aloud
        "Merneptah, Helstone, Zau al Makan",
        HEARD.replace("always accusing", "Merneptah"),
    ],
)
def test_a_phrase_where_nothing_sounded_like_it_is_refused(leaked: str) -> None:
    assert chosen(Rescorer(NAMES), candidate(HEARD), candidate(leaked, -0.01)) == HEARD


def test_being_prompted_makes_no_text_without_a_phrase_better() -> None:
    other = candidate(HEARD.replace("choppy", "shoppy"), -0.01)
    assert chosen(Rescorer(NAMES), candidate(HEARD), other) != other.text


def test_being_prompted_changes_no_punctuation() -> None:
    other = candidate(HEARD.replace("always", "always,"), -0.01)
    assert chosen(Rescorer(NAMES), candidate(HEARD), other) == HEARD


def test_of_two_texts_with_the_phrase_the_one_that_changes_less_wins() -> None:
    less = candidate(HEARD.replace("Houston", "Helstone"), -0.2)
    more = candidate(less.text.replace("choppy", "shoppy"), -0.1)
    assert chosen(Rescorer(NAMES), candidate(HEARD), more, less) == less.text


def test_a_text_that_lost_half_of_what_was_heard_is_refused() -> None:
    short = candidate("At Helstone.", -0.1)
    assert chosen(Rescorer(NAMES), candidate(HEARD), short) == HEARD


def test_a_language_model_chooses_as_well() -> None:
    heard, other = candidate("their house", -0.3), candidate("there house", -0.35)
    assert chosen(Rescorer([], Prefers("there")), heard, other) == "there house"
    assert chosen(Rescorer([], Prefers("their")), heard, other) == "their house"


def test_a_language_model_that_knows_no_word_prefers_no_short_text() -> None:
    heard, shorter = candidate("we never saw it", -0.3), candidate("we never saw", -0.31)
    assert chosen(Rescorer([], Prefers("x")), heard, shorter) == heard.text


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_any_text_is_chosen_from(texts: list[str]) -> None:
    candidates = [candidate(text) for text in texts]
    assert 0 <= Rescorer(NAMES).choose(candidates) < len(candidates)


# Hotwords -----------------------------------------------------------------------------------------


def test_what_sounds_near_and_is_in_doubt_is_told() -> None:
    assert hotwords(Rescorer(NAMES), HEARD, HEARD.replace("Houston", "Helstyn")) == "Helstone"


def test_a_near_sound_is_told_without_doubt() -> None:
    assert hotwords(Rescorer([("Kubernetes", 3.0)]), "On Cooper Netties.") == "Kubernetes"


def test_what_a_candidate_holds_is_not_told() -> None:
    assert hotwords(Rescorer(NAMES), HEARD, HEARD.replace("Houston", "helstone")) == ""


def test_nothing_near_is_nothing_told() -> None:
    assert hotwords(Rescorer(NAMES), "It takes heat to bring out the odour.") == ""
    assert hotwords(Rescorer(NAMES), "") == ""
    assert hotwords(Rescorer([]), HEARD) == ""


def test_chinese_names_are_found_by_their_sound() -> None:
    rescorer = Rescorer([("万达", 3.0), ("王芳", 3.0)])
    assert hotwords(rescorer, "今年完达将退出市场", language="zh") == "万达"


def test_a_short_name_is_told_only_for_its_very_sound() -> None:
    rescorer = Rescorer([("Abbie", 3.0)])
    assert hotwords(rescorer, "You can call me Abby.") == "Abbie"
    assert hotwords(rescorer, "You can be early.", "You can be able.") == ""


def test_a_name_in_another_script_is_not_written_among_latin_words() -> None:
    rescorer = Rescorer([("李娜", 3.0)])
    assert hotwords(rescorer, "It was Lina.") == ""
    assert hotwords(rescorer, "是莉娜。", language="zh") == "李娜"


def test_the_prompt_stays_short_however_long_the_glossary_is() -> None:
    rescorer = Rescorer([(f"Helston{letter}", 3.0) for letter in "abdefghiklmnop"])
    told = hotwords(rescorer, HEARD, HEARD.replace("Houston", "Helstin")).split(", ")
    assert len(told) == MAX_HOTWORDS
