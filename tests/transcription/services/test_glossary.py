"""The glossary holds each phrase once, within bounds; a list is taken whole or refused whole."""

from __future__ import annotations

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
        ("Müller", "Müller", DEFAULT_WEIGHT),
    ],
)
def test_a_line_is_a_phrase_and_perhaps_a_weight(line: str, phrase: str, weight: float) -> None:
    assert glossary.read_terms([line]) == [Term(phrase, weight)]


def test_heading_remarks_and_empty_lines_are_passed_over() -> None:
    assert glossary.read_terms(["phrase,weight", "", "# people", "Hale"]) == [Term("Hale")]


@pytest.mark.parametrize("line", ["—", "Hale, 11", "Hale, -1", "Hale, nan", "x" * 101, '"Hale",x'])
def test_a_bad_line_is_named(line: str) -> None:
    with pytest.raises(InvalidInputError, match="Line 2: "):
        glossary.read_terms(["Thornton", line])


def test_of_many_bad_lines_a_few_are_named() -> None:
    with pytest.raises(InvalidInputError, match=r"Line 3.*And 7 more"):
        glossary.read_terms(["?"] * 10)


@given(st.text(min_size=1, max_size=60), st.floats(0, 10))
def test_what_a_term_says_as_a_line_is_read_as_that_term(phrase: str, weight: float) -> None:
    weight = float(f"{weight:g}")
    try:
        term = glossary.clean_term(phrase, weight)
    except InvalidInputError:
        return
    if term.phrase[0] in '"#' or term.phrase.casefold().startswith("phrase"):
        return
    line = GlossaryTerm(phrase=term.phrase, weight=term.weight).line
    assert glossary.read_terms([line]) == [term]


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
