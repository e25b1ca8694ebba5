"""What two decodings agree on stays; nothing is lost, doubled or changed."""

from __future__ import annotations

import pytest

from asr_engine.backends.agreement import Agreement, Spelling, Unit, in_order, spell, without_loops
from asr_engine.results import Word, join_words


def units(text: str, *, start_ms: int = 0, word_ms: int = 300) -> list[Unit]:
    """One unit a word, 300 ms each."""
    return [
        Unit(Word(word, start_ms + index * word_ms, start_ms + (index + 1) * word_ms), (index,))
        for index, word in enumerate(text.split())
    ]


def characters(text: str) -> list[Unit]:
    return [
        Unit(Word(char, index * 100, (index + 1) * 100, has_space_before=False), (index,))
        for index, char in enumerate(text)
    ]


def hear(agreement: Agreement, text: str, *, horizon_ms: int = 100_000) -> None:
    agreement.update(units(text), is_spaced=True, horizon_ms=horizon_ms)


def agreed(agreement: Agreement) -> str:
    return join_words([unit.word for unit in agreement.agreed])


def test_one_decoding_agrees_on_nothing() -> None:
    agreement = Agreement()
    hear(agreement, "the quick brown")
    assert agreed(agreement) == ""
    assert join_words(agreement.words) == "the quick brown"


def test_words_that_two_decodings_share_are_agreed() -> None:
    agreement = Agreement()
    hear(agreement, "the quick clown")
    hear(agreement, "the quick brown fox")
    assert agreed(agreement) == "the quick"
    assert join_words(agreement.words) == "the quick brown fox"


def test_the_next_decoding_continues_after_the_agreed_words() -> None:
    agreement = Agreement()
    hear(agreement, "the quick clown")
    hear(agreement, "the quick brown fox")
    hear(agreement, "brown fox jumps")
    assert agreed(agreement) == "the quick brown fox"


def test_half_a_word_is_not_agreed_with_the_whole_one() -> None:
    agreement = Agreement()
    hear(agreement, "an inter")
    hear(agreement, "an international court")
    assert agreed(agreement) == "an"


def test_case_and_punctuation_do_not_hinder_agreement_inside() -> None:
    agreement = Agreement()
    hear(agreement, "well then we go on")
    hear(agreement, "Well, then we go on")
    assert agreed(agreement) == "Well, then we go on"


def test_punctuation_at_the_edge_waits_for_what_follows() -> None:
    """A decoder ends every cut buffer with a full stop: it must not stay in the sentence."""
    agreement = Agreement()
    hear(agreement, "go there.")
    hear(agreement, "go there, and")
    assert agreed(agreement) == "go"
    hear(agreement, "there, and back")
    assert agreed(agreement) == "go there, and"


def test_real_repetitions_are_kept() -> None:
    agreement = Agreement()
    hear(agreement, "very very")
    hear(agreement, "very very good")
    hear(agreement, "good indeed")
    agreement.settle()
    assert agreed(agreement) == "very very good indeed"


def test_a_word_at_the_end_of_the_buffer_is_not_agreed_yet() -> None:
    agreement = Agreement()
    hear(agreement, "one two three", horizon_ms=700)
    hear(agreement, "one two three", horizon_ms=700)
    assert agreed(agreement) == "one two"


def test_the_last_decoding_stays_whole() -> None:
    agreement = Agreement()
    hear(agreement, "one two")
    agreement.settle()
    assert agreed(agreement) == "one two"
    assert agreement.open == []


def test_characters_are_agreed_where_words_have_no_spaces() -> None:
    agreement = Agreement()
    agreement.update(characters("今天天汽"), is_spaced=False, horizon_ms=100_000)
    agreement.update(characters("今天天气怎么"), is_spaced=False, horizon_ms=100_000)
    assert agreed(agreement) == "今天天"


@pytest.mark.parametrize("is_spaced", [True, False])
def test_a_decoding_that_heard_nothing_agrees_with_none(*, is_spaced: bool) -> None:
    agreement = Agreement()
    for text in ("", "今天", "", "今天天气"):
        agreement.update(characters(text), is_spaced=is_spaced, horizon_ms=100_000)
    assert agreed(agreement) == ""
    agreement.settle()
    assert agreed(agreement) == "今天天气"


def test_characters_agree_however_the_tokens_group_them() -> None:
    agreement = Agreement()
    agreement.update(characters("北京大学"), is_spaced=False, horizon_ms=100_000)
    pairs = [
        Unit(Word("北京", 0, 200, has_space_before=False), (1,)),
        Unit(Word("大学生", 200, 500, has_space_before=False), (2,)),
    ]
    agreement.update(pairs, is_spaced=False, horizon_ms=100_000)
    assert agreed(agreement) == "北京"


@pytest.mark.parametrize(
    ("pieces", "is_spaced", "expected"),
    [
        ([" Mr", ".", " Hale", ","], True, ["Mr.", "Hale,"]),
        ([" it", "'s", " 3", ".", "5"], True, ["it's", "3.5"]),
        (["今天", "天气", "，", "怎么", "？"], False, ["今天", "天气，", "怎么？"]),
        (["用", "i", "Phone", "1", "5", "拍"], False, ["用", "iPhone15", "拍"]),
        (["", " ", "。"], False, ["。"]),
        ([], True, []),
    ],
)
def test_pieces_become_units(pieces: list[str], is_spaced: bool, expected: list[str]) -> None:
    spelled = spell([(piece, (index,)) for index, piece in enumerate(pieces)], is_spaced=is_spaced)
    assert [unit.text for unit in spelled] == expected


def test_no_token_is_lost_in_spelling() -> None:
    pieces = [(" a", (1,)), ("b", (2, 3)), (".", (4,)), (" c", (5,))]
    spelled = spell(pieces, is_spaced=True)
    assert [token for unit in spelled for token in unit.tokens] == [1, 2, 3, 4, 5]


def test_a_sentence_after_a_full_stop_has_its_space() -> None:
    assert spell([("To", (1,))], is_spaced=True, follows="States.") == [Spelling("To", (1,), True)]
    assert spell([("house", (1,))], is_spaced=True, follows="work") == [
        Spelling("house", (1,), False)
    ]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("no no no no", "no no no no"),
        ("very very good", "very very good"),
        ("so no no no no no no no", "so no"),
        ("yes " + "I do not know " * 6, "yes I do not know"),
        ("and again and again and again", "and again and again and again"),
        ("", ""),
    ],
)
def test_loops_are_cut_and_repetitions_kept(said: str, kept: str) -> None:
    assert join_words([unit.word for unit in without_loops(units(said))]) == kept.strip()


@pytest.mark.parametrize(
    "spans",
    [
        [(0, 100), (50, 60), (40, 900)],
        [(990, 990), (1000, 1000), (1000, 1000)],
        [(-5, -1), (2000, 3000)],
        [(500, 400)],
        [],
    ],
)
def test_times_rise_within_their_bounds(spans: list[tuple[int, int]]) -> None:
    ordered = in_order(spans, start_ms=10, end_ms=1000)
    assert len(ordered) == len(spans)
    flat = [moment for span in ordered for moment in span]
    assert flat == sorted(flat)
    assert all(begin < end for begin, end in ordered)
    assert all(begin >= 10 and end <= 1000 for begin, end in ordered)
