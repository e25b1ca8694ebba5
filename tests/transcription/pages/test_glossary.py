"""The organisation's names and terms are the administrators'; a recording's are its owner's."""

from __future__ import annotations

import html
from collections.abc import Callable

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.fakes.pages import make_recording
from tests.fakes.people import make_administrator
from transcription.models import GlossaryTerm, Job, JobState, Recording
from transcription.services import glossary
from webapp.accounts.models import User

ClientOf = Callable[[User | None], Client]

ACTS = ("add/", "import/", "1/", "1/delete/")


@pytest.fixture
def admin(db: None) -> User:
    return make_administrator()


@pytest.fixture
def recording(alice: User) -> Recording:
    return make_recording(alice, "Weekly", "Good morning.")


@pytest.fixture
def hale(db: None) -> GlossaryTerm:
    return GlossaryTerm.objects.create(phrase="Hale", weight=5)


def terms(recording: Recording | None = None) -> list[tuple[str, float]]:
    return [(term.phrase, term.weight) for term in glossary.terms_of(recording)]


# Who may ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["", "export.csv"])
def test_others_than_administrators_get_404(
    alice: User, hale: GlossaryTerm, client_of: ClientOf, part: str
) -> None:
    response = client_of(alice).get(f"/glossary/{part}")
    assert response.status_code == 404
    assert b"Hale" not in response.content
    assert client_of(None).get(f"/glossary/{part}").status_code == 302


@pytest.mark.parametrize("part", ACTS)
def test_others_than_administrators_change_nothing(
    alice: User, hale: GlossaryTerm, client_of: ClientOf, part: str
) -> None:
    address = f"/glossary/{part}".replace("1", str(hale.pk))
    data = {"phrase": "Mine", "weight": "1", "lines": "Mine"}
    assert client_of(alice).post(address, data).status_code == 404
    assert client_of(alice).get(address).status_code == 405
    assert terms() == [("Hale", 5.0)]


def test_the_menu_leads_administrators_there(admin: User, alice: User, client_of: ClientOf) -> None:
    assert 'href="/glossary/"' in client_of(admin).get("/").content.decode()
    assert 'href="/glossary/"' not in client_of(alice).get("/").content.decode()


# The list -----------------------------------------------------------------------------------------


def test_an_empty_list_says_how_to_begin(admin: User, client_of: ClientOf) -> None:
    assert "Nothing is here yet." in client_of(admin).get("/glossary/").content.decode()


def test_the_list_is_paged_and_searched_in_few_queries(
    admin: User,
    client_of: ClientOf,
    django_assert_max_num_queries: Callable[[int], object],
) -> None:
    GlossaryTerm.objects.bulk_create(GlossaryTerm(phrase=f"Term {n:03}") for n in range(120))
    client = client_of(admin)
    with django_assert_max_num_queries(6):  # type: ignore[attr-defined]
        page = client.get("/glossary/?page=2").content.decode()
    assert "Term 050" in page
    assert "Term 049" not in page
    assert "Page 2 of 3" in page
    found = client.get("/glossary/?q=term+11").content.decode()
    assert "10 of 120" in found
    assert "Term 111" in found
    assert "Term 050" not in found


def test_a_term_is_text_wherever_it_is_shown(admin: User, client_of: ClientOf) -> None:
    GlossaryTerm.objects.create(phrase='"><script>alert(1)</script>')
    page = client_of(admin).get("/glossary/?q=<script>").content.decode()
    assert "<script>alert" not in page
    assert "1 of 1" in page


def test_terms_are_added_changed_and_deleted(admin: User, client_of: ClientOf) -> None:
    client = client_of(admin)
    client.post("/glossary/add/", {"phrase": " Helstone ", "weight": "3"})
    term = GlossaryTerm.objects.get()
    assert (term.phrase, term.weight, term.created_by) == ("Helstone", 3.0, admin)
    data = {"phrase": "Helston", "weight": "4.5", "q": "hel", "page": "1"}
    response = client.post(f"/glossary/{term.pk}/", data)
    assert response["Location"] == "/glossary/?q=hel&page=1"
    assert terms() == [("Helston", 4.5)]
    page = client.post(f"/glossary/{term.pk}/delete/", follow=True).content.decode()
    assert "“Helston” is deleted." in page
    assert terms() == []
    assert client.post(f"/glossary/{term.pk}/delete/").status_code == 404


@pytest.mark.parametrize(
    "data",
    [
        {"phrase": "", "weight": "3"},
        {"phrase": "…", "weight": "3"},
        {"phrase": "x" * 101, "weight": "3"},
        {"phrase": "Helstone", "weight": "11"},
        {"phrase": "Helstone", "weight": "nan"},
        {"phrase": "Helstone"},
    ],
)
def test_a_bad_term_is_refused_with_a_sentence(
    admin: User, client_of: ClientOf, data: dict[str, str]
) -> None:
    response = client_of(admin).post("/glossary/add/", data)
    assert response.status_code == 400
    page = response.content.decode()
    assert 'class="field-error"' in page
    assert f'value="{data["phrase"]}"' in page or not data["phrase"]
    assert terms() == []


def test_a_refused_change_stays_in_its_row(
    admin: User, hale: GlossaryTerm, client_of: ClientOf
) -> None:
    GlossaryTerm.objects.create(phrase="Thornton")
    data = {"phrase": "thornton", "weight": "2.25", "q": "hal", "page": "1"}
    response = client_of(admin).post(f"/glossary/{hale.pk}/", data)
    page = response.content.decode()
    assert response.status_code == 400
    assert 'value="thornton"' in page
    assert 'value="2.25"' in page
    assert "“thornton” is in the glossary already." in page
    assert "1 of 2" in page
    assert page.count('aria-invalid="true"') == 1
    assert terms() == [("Hale", 5.0), ("Thornton", 3.0)]


@pytest.mark.parametrize("weight", ["3.5", "3", "2.1234567"])
def test_a_weight_is_shown_as_it_is(admin: User, client_of: ClientOf, weight: str) -> None:
    GlossaryTerm.objects.create(phrase="Hale", weight=float(weight))
    page = client_of(admin).get("/glossary/").content.decode()
    assert f'step="any" value="{weight}"' in page


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("Good one\nBad, 99\nAlso good", "Line 2: “99” is no weight"),
        ("name,email,team\nAnna,a@example.org,Sales", "Line 1: This is more than one term"),
        ("\n".join(f"Name {n}" for n in range(2001)), "There may be 2000 terms at most."),
        ("# nobody", "The list is empty."),
    ],
    ids=["bad weight", "other table", "too many", "nothing"],
)
def test_a_refused_list_stays_in_the_form(
    admin: User, client_of: ClientOf, lines: str, said: str
) -> None:
    response = client_of(admin).post("/glossary/import/", {"lines": lines})
    page = response.content.decode()
    assert response.status_code == 400
    assert f"\n{lines}</textarea>" in page
    assert said in page.split("</textarea>")[1]
    assert 'aria-describedby="id_lines_error"' in page
    assert terms() == []


def test_a_bad_file_is_named_at_its_field(admin: User, client_of: ClientOf) -> None:
    data = {"lines": "Hale", "file": SimpleUploadedFile("list.csv", b"Thornton, 99")}
    page = client_of(admin).post("/glossary/import/", data).content.decode()
    assert "\nHale</textarea>" in page
    assert 'id="id_file_error"' in page
    assert "Line 1: " in page.split('id="id_file_error"')[1]
    assert terms() == []


def test_a_list_is_read_from_the_page_and_from_a_file(admin: User, client_of: ClientOf) -> None:
    file = SimpleUploadedFile("people.csv", "\ufeffphrase,weight\r\nThornton,4\r\n".encode())
    data = {"lines": "Hale\n\nHelstone, 5", "file": file}
    page = client_of(admin).post("/glossary/import/", data, follow=True).content.decode()
    assert "The list is read: 3 added." in page
    assert terms() == [("Hale", 3.0), ("Helstone", 5.0), ("Thornton", 4.0)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe\x00H", "Save it as UTF-8"),
        (b"x" * 500_001, "too large"),
        (b"", "empty"),
        (b"Hale, 99", "Line 1"),
    ],
)
def test_a_file_that_is_no_list_is_refused(
    admin: User, client_of: ClientOf, content: bytes, said: str
) -> None:
    data = {"file": SimpleUploadedFile("list.csv", content)}
    response = client_of(admin).post("/glossary/import/", data)
    assert response.status_code == 400
    assert said in response.content.decode()
    assert terms() == []


def test_what_is_downloaded_can_be_read_again(admin: User, client_of: ClientOf) -> None:
    for phrase, weight in (
        ("Hale, Thornton & Co", 2.5),
        ('The "Mill"', 3.0),
        ("万达", 10.0),
        ("#MeToo", 4.0),
        ("Catch; 22", 3.0),
        ("10,000", 3.0),
        ("phrase;weight", 0.1),
    ):
        GlossaryTerm.objects.create(phrase=phrase, weight=weight)
    before = terms()
    client = client_of(admin)
    csv = client.get("/glossary/export.csv").content
    GlossaryTerm.objects.all().delete()
    client.post("/glossary/import/", {"file": SimpleUploadedFile("glossary.csv", csv)})
    assert terms() == before


# Of one recording ---------------------------------------------------------------------------------


def test_the_owner_finds_the_recordings_list_on_its_page(
    alice: User, bob: User, recording: Recording, client_of: ClientOf
) -> None:
    GlossaryTerm.objects.create(recording=recording, phrase="Helstone", weight=5)
    Recording.objects.update(is_organisation_wide=True)
    page = client_of(alice).get(f"/recordings/{recording.id}/").content.decode()
    assert 'data-opens="terms"' in page
    assert ">Helstone, 5\n</textarea>" in page
    other = client_of(bob).get(f"/recordings/{recording.id}/").content.decode()
    assert "Helstone" not in other


def test_the_recordings_list_is_replaced(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    GlossaryTerm.objects.create(recording=recording, phrase="Moses")
    address = f"/recordings/{recording.id}/terms/"
    client_of(alice).post(address, {"terms": "Helstone, 5\r\nHale\r\n"})
    assert terms(recording) == [("Hale", 3.0), ("Helstone", 5.0)]
    assert terms() == []
    assert not Job.objects.exists()


def test_saving_may_transcribe_again(
    alice: User, recording: Recording, client_of: ClientOf, sent: list[tuple[str, ...]]
) -> None:
    address = f"/recordings/{recording.id}/terms/"
    client_of(alice).post(address, {"terms": "Hale", "again": "1"})
    assert terms(recording) == [("Hale", 3.0)]
    assert Job.objects.get(recording=recording).state == JobState.QUEUED


def test_a_stranger_and_a_reader_get_404_for_it(
    bob: User, recording: Recording, client_of: ClientOf
) -> None:
    address = f"/recordings/{recording.id}/terms/"
    for is_wide in (False, True):
        Recording.objects.update(is_organisation_wide=is_wide)
        assert client_of(bob).post(address, {"terms": "Mine"}).status_code == 404
    assert client_of(None).post(address, {"terms": "Mine"}).status_code == 302
    assert terms(recording) == []


def test_a_bad_line_of_it_is_named_beside_the_list(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    GlossaryTerm.objects.create(recording=recording, phrase="Moses")
    address = f"/recordings/{recording.id}/terms/"
    client = client_of(alice)
    response = client.post(address, {"terms": "Hale\nBad, 99", "again": "1"})
    page = response.content.decode()
    assert response.status_code == 400
    assert "\nHale\nBad, 99</textarea>" in page
    assert "Line 2: “99” is no weight" in page
    assert f'action="{address}"' in page
    assert "Save and transcribe again" in page
    assert terms(recording) == [("Moses", 3.0)]
    assert not Job.objects.exists()
    Job.objects.create(recording=recording)
    page = client.post(address, {"terms": "?"}).content.decode()
    assert "Save and transcribe again" not in page


def test_what_its_list_says_is_what_is_stored(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    """Saved without a change nothing changes."""
    for phrase, weight in (("#MeToo", 3.0), ("Catch; 22", 3.0), ('"Al", 5', 2.5)):
        GlossaryTerm.objects.create(recording=recording, phrase=phrase, weight=weight)
    before, client = terms(recording), client_of(alice)
    page = client.get(f"/recordings/{recording.id}/").content.decode()
    shown = page.split('id="terms-lines"')[1].split(">", 1)[1].split("</textarea>")[0]
    client.post(f"/recordings/{recording.id}/terms/", {"terms": html.unescape(shown)})
    assert terms(recording) == before


def test_terms_saved_while_a_job_goes_on_count_for_the_rest(
    alice: User, recording: Recording, client_of: ClientOf, sent: list[tuple[str, ...]]
) -> None:
    client, address = client_of(alice), f"/recordings/{recording.id}/terms/"
    rest = "for what is still to be heard"
    page = client.post(address, {"terms": "Hale"}, follow=True).content.decode()
    assert "They count when the recording is transcribed again." in page
    assert rest not in page
    client.post(address, {"terms": "Hale", "again": "1"})
    page = client.post(address, {"terms": "Hale"}, follow=True).content.decode()
    assert page.count(rest) == 2  # in the message, and beside the list
