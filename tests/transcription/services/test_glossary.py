"""The glossary holds each phrase once, within bounds; a list is taken whole or refused whole."""

from __future__ import annotations

import contextlib
import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.pages import make_recording, write_transcript
from transcription.errors import InvalidInputError, NotFoundError
from transcription.models import GlossaryTerm, Recording, RevisionKind
from transcription.models.glossary import DEFAULT_WEIGHT
from transcription.services import glossary
from transcription.services.glossary import Term, Written
from webapp.accounts.models import User


@pytest.fixture
def recording(alice: User) -> Recording:
    return make_recording(alice, "Weekly")


def write(
    recording: Recording | None, *lines: str, replaces_all: bool = False, by: User | None = None
) -> Written:
    return glossary.write_terms(
        recording=recording,
        terms=glossary.read_terms(lines),
        written_by=by,
        replaces_all=replaces_all,
    )


def phrases(recording: Recording | None = None) -> list[str]:
    return [term.phrase for term in glossary.terms_of(recording)]


# Reading ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "phrase", "weight"),
    [
        ("Helstone", "Helstone", DEFAULT_WEIGHT),
        ("  Zau  al Makan , 5 ", "Zau al Makan", 5.0),
        ("Helstone;2,5", "Helstone", 2.5),
        ("Helstone\t7", "Helstone", 7.0),
        ("Hale, Thornton & Co", "Hale, Thornton & Co", DEFAULT_WEIGHT),
        ('"Hale, 1855",4', "Hale, 1855", 4.0),
        ("Helstone,", "Helstone", DEFAULT_WEIGHT),
        ("\ufeff万达", "万达", DEFAULT_WEIGHT),
        ("Mu\u0308ller", "Müller", DEFAULT_WEIGHT),
        ("e\u200d\u0301", "é", DEFAULT_WEIGHT),
        ("王小明，5", "王小明", 5.0),
        ("王小明；2.5", "王小明", 2.5),
        ("#MeToo", "#MeToo", DEFAULT_WEIGHT),
        ("C#, 4", "C#", 4.0),
        ('"# 1 fan"; "3,5"', "# 1 fan", 3.5),
        ('"Catch; 22"', "Catch; 22", DEFAULT_WEIGHT),
        ('"10,000", 2', "10,000", 2.0),
        ('"""Weird Al"" Yankovic"', '"Weird Al" Yankovic', DEFAULT_WEIGHT),
        ("10,000 Maniacs", "10,000 Maniacs", DEFAULT_WEIGHT),
        ("Boeing, 747, 5", "Boeing, 747", 5.0),
        ("Boeing 747,5", "Boeing 747", 5.0),
        ("Hale, 0", "Hale", 0.0),
        ("phrase, 4", "phrase", 4.0),
    ],
)
def test_a_line_is_a_phrase_and_perhaps_a_weight(line: str, phrase: str, weight: float) -> None:
    assert glossary.read_terms([line]) == [Term(phrase, weight)]


@pytest.mark.parametrize(
    ("heading", "row", "phrase", "weight"),
    [
        ("phrase,weight", "Catch; 22,4", "Catch; 22", 4.0),
        ("phrase,weight", '"Hale, 1855",', "Hale, 1855", DEFAULT_WEIGHT),
        ("phrase,weight", "Boeing 747,5", "Boeing 747", 5.0),
        ("phrase,weight", "王小明，5", "王小明，5", DEFAULT_WEIGHT),
        ("phrase;weight", "Helstone;3,5", "Helstone", 3.5),
        ("phrase;weight", "Hale, Thornton & Co", "Hale, Thornton & Co", DEFAULT_WEIGHT),
        ('\ufeff"Phrase"; "Weight"', "Helstone;", "Helstone", DEFAULT_WEIGHT),
        ("phrase\tweight", "A; 2\t7", "A; 2", 7.0),
    ],
)
def test_a_heading_says_what_parts_the_columns(
    heading: str, row: str, phrase: str, weight: float
) -> None:
    assert glossary.read_terms(["", heading, row]) == [Term(phrase, weight)]


def test_heading_remarks_and_empty_lines_are_passed_over() -> None:
    lines = ["# list", "phrase,weight", "", "# people", "#", "## places", "Hale"]
    assert glossary.read_terms(lines) == [Term("Hale")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("—", "at least one letter"),
        ("x" * 101, "at most 100"),
        ("Hale, 11", "“11” is no weight"),
        ("Boeing; 747", "“747” is no weight"),
        ("Hale, 10.5", "between 0 and 10"),
        ("Hale, -1", "“-1” is no weight"),
        ("Hale, nan", "“nan” is no weight"),
        ('"Hale",x', "“x” is no weight"),
        ("10,000", "digits can be read in two ways"),
        ("Hale, 3,5", "digits can be read in two ways"),
        ("Boeing, 747,5", "digits can be read in two ways"),
        ("Year 10,000", "“000” is no weight"),
        ("10，5", "digits can be read in two ways"),
        ("name,email,team", "more than one term"),
        ("Anna Müller,anna@example.org,Sales", "more than one term"),
        ("Anna,anna@example.org", "more than one term"),
        ("Anna\tMüller", "more than one term"),
        ("Anna, Bob, Carol", "more than one term"),
        ('"Hale', "quotation marks do not fit"),
        ('"Weird Al" Yankovic', "quotation marks do not fit"),
    ],
)
def test_a_bad_line_is_named_with_what_to_write(line: str, said: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        glossary.read_terms(["Thornton", line])
    assert "Line 2: " in refusal.value.text
    assert said in refusal.value.text
    assert refusal.value.text.endswith('quotation marks: "Catch, 22", 5.')


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("10,000", "“000” is no weight"),
        ("Hale, Thornton & Co", "“Thornton & Co” is no weight"),
        ("Hale,3,5", "more than one term"),
        ('"Hale,3', "quotation marks do not fit"),
    ],
)
def test_a_row_that_its_heading_does_not_fit_is_refused(row: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        glossary.read_terms(["phrase,weight", row])


def test_of_many_bad_lines_a_few_are_named() -> None:
    with pytest.raises(InvalidInputError, match=r"Line 3.*And 7 more"):
        glossary.read_terms(["?"] * 10)


PHRASES = st.one_of(
    st.text(min_size=1, max_size=60),
    # What a reader could take for something else.
    st.text(alphabet="aB1，；、,;\t\"'#. -", min_size=1, max_size=12),
    st.sampled_from(
        ["phrase,weight", "phrase;weight", "phrase", "10,000", "#MeToo", "# 1", "A; 2"]
    ),
)
TERMS = st.lists(st.tuples(PHRASES, st.floats(0, 10) | st.sampled_from([3.0, -0.0])), max_size=5)


def cleaned(written: list[tuple[str, float]]) -> list[Term]:
    """Those that are terms, each phrase once."""
    terms: dict[str, Term] = {}
    for phrase, weight in written:
        with contextlib.suppress(InvalidInputError):
            term = glossary.clean_term(phrase, weight)
            terms.setdefault(term.key, term)
    return list(terms.values())


@given(TERMS)
def test_an_exported_table_is_read_as_the_same_terms(written: list[tuple[str, float]]) -> None:
    terms = cleaned(written)
    table = "\r\n".join(glossary.table_of(terms))
    assert glossary.read_terms(table.splitlines()) == terms


@given(TERMS)
def test_a_list_to_change_is_read_as_the_same_terms(written: list[tuple[str, float]]) -> None:
    terms = cleaned(written)
    text = "\n".join(glossary.line_of(term) for term in terms)
    assert glossary.read_terms(text.splitlines()) == terms


@given(TERMS)
def test_others_read_the_exported_table_as_csv(written: list[tuple[str, float]]) -> None:
    terms = cleaned(written)
    rows = list(csv.reader(glossary.table_of(terms)))
    assert rows[0] == ["phrase", "weight"]
    assert [(phrase, float(weight)) for phrase, weight in rows[1:]] == [
        (term.phrase, term.weight) for term in terms
    ]


@pytest.mark.parametrize(
    ("weight", "text"),
    [
        (3.0, "3"),
        (3.5, "3.5"),
        (10.0, "10"),
        (0.0, "0"),
        (1e-5, "0.00001"),
        (2.1234567, "2.1234567"),
    ],
)
def test_a_weight_has_the_digits_that_it_needs(weight: float, text: str) -> None:
    assert glossary.weight_text(weight) == text


# Writing ------------------------------------------------------------------------------------------


def test_a_phrase_is_there_once_whatever_its_case(db: None, alice: User) -> None:
    assert write(None, "hale", "Thornton", by=alice) == Written(added=2, changed=0)
    assert write(None, "Hale, 5", "Thornton") == Written(added=0, changed=1)
    assert [(term.phrase, term.weight) for term in glossary.terms_of(None)] == [
        ("Hale", 5.0),
        ("Thornton", 3.0),
    ]
    assert set(glossary.terms_of(None).values_list("created_by", flat=True)) == {alice.pk}


def test_a_whole_list_replaces_what_was_there(recording: Recording) -> None:
    write(None, "Moses")
    write(recording, "Hale", "Thornton")
    result = write(recording, "Hale", "Margaret", replaces_all=True)
    assert result == Written(added=1, changed=0, removed=1)
    assert phrases(recording) == ["Hale", "Margaret"]
    assert phrases() == ["Moses"]


def test_too_many_terms_are_refused_whole(recording: Recording) -> None:
    many = [f"Term {number}" for number in range(glossary.MAX_RECORDING_TERMS + 1)]
    with pytest.raises(InvalidInputError, match="200"):
        write(recording, *many)
    assert phrases(recording) == []
    assert write(None, *many).added == len(many)


def test_terms_of_a_deleted_recording_are_refused(recording: Recording) -> None:
    Recording.objects.filter(id=recording.id).delete()
    with pytest.raises(NotFoundError):
        write(recording, "Hale")


def test_a_term_is_changed_but_not_into_another(alice: User) -> None:
    write(None, "Hale", "Thornton")
    term = GlossaryTerm.objects.get(phrase="Hale")
    glossary.change_term(term=term, phrase="HALE", weight=8.0, changed_by=alice)
    assert phrases() == ["HALE", "Thornton"]
    with pytest.raises(InvalidInputError, match="already"):
        glossary.change_term(term=term, phrase="thornton", weight=8.0, changed_by=alice)


# What counts --------------------------------------------------------------------------------------


def test_a_recordings_own_terms_go_before_the_organisations(
    recording: Recording, bob: User
) -> None:
    other = make_recording(bob, "Another")
    write(None, "Hale, 2", "Thornton")
    write(recording, "hale, 9", "Margaret")
    write(other, "Moses")
    assert sorted(glossary.phrases_for(recording)) == [
        ("Margaret", 3.0),
        ("Thornton", 3.0),
        ("hale", 9.0),
    ]


def test_deleting_a_recording_deletes_its_terms(recording: Recording) -> None:
    write(recording, "Hale")
    recording.delete()
    assert not GlossaryTerm.objects.exists()


def test_lines_for_a_language_model_are_those_that_were_refined_or_edited(alice: User) -> None:
    for kind, text, language in (
        (RevisionKind.REFINED, "Good morning, Mr. Hale!", "en"),
        (RevisionKind.EDITED, "早上好。", "zh"),
        (RevisionKind.DRAFT, "A draft.", "en"),
        (RevisionKind.REFINED, "…", "en"),
    ):
        revision = write_transcript(make_recording(alice, kind), text)
        revision.kind, revision.language = kind, language
        revision.save()
    assert list(glossary.written_lines()) == ["good morning mr hale", "早 上 好"]
    assert list(glossary.written_lines("zh")) == ["早 上 好"]
