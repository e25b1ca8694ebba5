"""The versions of a transcript: a page and downloads for each, with the recording's own rights."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from asr_engine.results import Word
from tests.fakes.pages import make_recording, write_transcript
from tests.fakes.shares import open_for, share
from transcription.models import (
    Job,
    JobState,
    Recording,
    RevisionKind,
    TranscriptRevision,
    TranscriptSegment,
)
from transcription.pages import versions
from transcription.services.share_links import create_share_link
from webapp.accounts.models import AuditEntry, User

ClientOf = Callable[[User | None], Client]
READS = ("", "text/", "export.txt")
EXTENSIONS = ("txt", "srt", "vtt", "json")


@pytest.fixture
def recording(alice: User) -> Recording:
    """Version 1 is a draft of the day before yesterday; 2 is refined, and shown."""
    recording = make_recording(alice, "Weekly", "Good mourning.", "The lifts are not ready.")
    recording.revisions.update(
        created_at=timezone.now() - timedelta(days=2), language="en", model_name="base"
    )
    write_transcript(recording, "Good morning.", number=2, kind=RevisionKind.REFINED)
    return recording


def address(recording: Recording, number: int, part: str = "") -> str:
    return f"/recordings/{recording.id}/versions/{number}/{part}"


def page_of(client: Client, path: str) -> str:
    return client.get(path).content.decode()


def told(recording: Recording) -> list[tuple[str, str]]:
    entries = AuditEntry.objects.filter(subject_kind="recording", subject_id=str(recording.id))
    return list(entries.order_by("id").values_list("actor_name", "act"))


# The page of a version ----------------------------------------------------------------------------


def test_a_version_is_read_with_what_it_is_and_the_way_back(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    unsure = Word("mourning.", 200, 400, 0.2).as_json()
    recording.revisions.get(number=1).segments.filter(index=0).update(words=[unsure])
    page = page_of(client_of(alice), address(recording, 1))
    assert 'Good <span class="unsure">mourning.</span>' in page
    assert "Good morning." not in page
    assert "This is an earlier version. The recording shows Refined of " in page
    assert "Draft of " in page
    assert "<dt>Language</dt><dd>English</dd>" in page
    assert "<dt>Model</dt><dd>base</dd>" in page
    assert f'href="/recordings/{recording.id}/"' in page
    assert "ncomplete" not in page
    assert str(None) not in page
    for extension in EXTENSIONS:
        assert address(recording, 1, f"export.{extension}") in page


def test_the_current_version_is_the_page_of_the_recording(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    response = client_of(alice).get(address(recording, 2))
    assert (response.status_code, response["Location"]) == (302, f"/recordings/{recording.id}/")


def test_a_newer_version_that_is_not_shown_is_not_called_earlier(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    shown = recording.current_revision
    write_transcript(recording, number=3, kind=RevisionKind.REFINED)
    Recording.objects.update(current_revision=shown)
    page = page_of(client_of(alice), address(recording, 3))
    assert "This is not the version that the recording shows." in page
    assert "There is no text in this version." in page


@pytest.mark.parametrize(
    ("kind", "state", "sentence"),
    [
        (RevisionKind.DRAFT, JobState.CANCELLED, "It is incomplete"),
        (RevisionKind.REFINED, JobState.FAILED, "It is incomplete"),
        (RevisionKind.REFINED, JobState.RUNNING, "This version is still being written"),
        (RevisionKind.EDITED, JobState.DONE, "This is an earlier version. The recording"),
    ],
)
def test_an_incomplete_version_says_so(
    alice: User,
    recording: Recording,
    client_of: ClientOf,
    kind: RevisionKind,
    state: JobState,
    sentence: str,
) -> None:
    job = Job.objects.create(recording=recording, state=state)
    recording.revisions.filter(number=1).update(kind=kind, job=job, is_complete=False)
    assert sentence in page_of(client_of(alice), address(recording, 1))
    listed = page_of(client_of(alice), f"/recordings/{recording.id}/")
    assert (">Incomplete<" in listed) == (sentence == "It is incomplete")


def test_a_refined_version_that_was_stopped_goes_on_in_its_draft(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    job = Job.objects.create(recording=recording, state=JobState.CANCELLED)
    recording.revisions.filter(number=1).update(job=job, is_complete=False)
    shown = recording.current_revision
    write_transcript(
        recording,
        "Good evening.",
        number=3,
        kind=RevisionKind.REFINED,
        job=job,
        is_complete=False,
        replaced_segments=1,
    )
    Recording.objects.update(current_revision=shown)
    client = client_of(alice)
    page = page_of(client, address(recording, 3))
    assert "Good evening." in page
    assert address(recording, 3, "text/?from=0&amp;of=draft") in page
    rest = page_of(client, address(recording, 3, "text/?from=0&of=draft"))
    assert 'class="transcript-tail"' in rest
    assert "The lifts are not ready." in rest
    assert "Good mourning." not in rest
    text = page_of(client, address(recording, 3, "export.txt"))
    assert text.index("Good evening.") < text.index("The lifts are not ready.")


def test_names_of_speakers_stand_in_every_version(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    TranscriptSegment.objects.update(speaker="1")
    recording.speaker_names.create(label="1", name="Zoë")
    for part in ("", "text/", "export.txt"):
        assert "Zoë" in page_of(client_of(alice), address(recording, 1, part))


def test_html_is_text(alice: User, client_of: ClientOf) -> None:
    evil = "<script>alert(1)</script>"
    recording = make_recording(alice, evil, f"{evil} said")
    TranscriptSegment.objects.update(speaker=evil)
    recording.revisions.update(model_name=evil)
    write_transcript(recording, "Good.", number=2)
    for part in ("", "text/"):
        page = page_of(client_of(alice), address(recording, 1, part))
        assert "<script>alert" not in page
        assert "alert(1)" in page


# Long ones ----------------------------------------------------------------------------------------


def test_a_long_version_comes_in_parts_that_lose_and_repeat_nothing(
    alice: User, recording: Recording, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "PART_SEGMENTS", 20)
    long = make_recording(alice, "Long", *(f"Sentence {number}." for number in range(107)))
    write_transcript(long, "Anew.", number=2)
    client, path, read = client_of(alice), address(long, 1), ""
    for _ in range(20):
        page = page_of(client, path)
        assert page.count('class="line') <= 20
        read += page
        if 'hx-get="' not in page:
            break
        path = page.split('hx-get="')[1].split('"')[0].replace("&amp;", "&")
    assert [read.count(f">Sentence {number}.<") for number in range(107)] == [1] * 107
    assert 'id="version-more" hx-swap-oob="true"' in read
    assert "From the beginning" in page_of(client, address(long, 1, "?from=40"))


def test_a_part_ends_with_a_paragraph(
    alice: User, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "PART_SEGMENTS", 3)
    recording = make_recording(alice, "Long", *(f"Sentence {number}." for number in range(5)))
    # The third begins a paragraph that the fourth belongs to.
    for index, speaker in enumerate("11222"):
        TranscriptSegment.objects.filter(index=index).update(speaker=speaker)
    write_transcript(recording, "Anew.", number=2)
    page = page_of(client_of(alice), address(recording, 1))
    assert "Sentence 1." in page
    assert "Sentence 2." not in page
    assert address(recording, 1, "text/?from=2") in page


@pytest.mark.parametrize("query", ["from=", "from=-1", "from=x", "from=٣", "from=99999999999999"])
def test_a_place_that_is_no_number_is_the_beginning(
    alice: User, recording: Recording, client_of: ClientOf, query: str
) -> None:
    for part in ("", "text/"):
        assert "Good mourning." in page_of(
            client_of(alice), address(recording, 1, f"{part}?{query}")
        )


@pytest.mark.parametrize("part", ["", "text/"])
def test_queries(
    alice: User,
    client_of: ClientOf,
    django_assert_max_num_queries: DjangoAssertNumQueries,
    part: str,
) -> None:
    recording = make_recording(alice, "Long", *(f"Sentence {number}." for number in range(300)))
    for number in range(2, 20):
        write_transcript(recording, "Anew.", number=number)
    client = client_of(alice)
    client.get(address(recording, 1, part))  # told to the audit log
    with django_assert_max_num_queries(16 if part == "" else 8):
        assert b"Sentence 299." in client.get(address(recording, 1, part)).content


# Downloads ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_a_version_is_downloaded_under_a_name_of_its_own(
    alice: User, recording: Recording, client_of: ClientOf, extension: str
) -> None:
    Recording.objects.update(language="de")
    response = client_of(alice).get(address(recording, 1, f"export.{extension}"))
    text = response.content.decode()
    assert "Good mourning." in text
    assert "Good morning." not in text
    name = f'attachment; filename="Weekly (draft, version 1).{extension}"'
    assert response["Content-Disposition"] == name
    if extension == "json":
        assert json.loads(text)["language"] == "en"
    current = client_of(alice).get(address(recording, 2, f"export.{extension}"))
    assert current["Content-Disposition"] == f'attachment; filename="Weekly.{extension}"'


def test_unknown_formats_are_not_found(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    assert client_of(alice).get(address(recording, 1, "export.exe")).status_code == 404


# Rights -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", READS)
def test_who_reads_the_recording_reads_its_versions(
    bob: User,
    charlie: User,
    administrator: User,
    recording: Recording,
    client_of: ClientOf,
    part: str,
) -> None:
    share(recording, with_=bob)
    for stranger in (charlie, administrator):
        refused = client_of(stranger).get(address(recording, 1, part))
        assert refused.status_code == HTTPStatus.NOT_FOUND
        assert b"mourning" not in refused.content
        assert b"Weekly" not in refused.content
    assert told(recording) == []
    open_for(administrator, recording)
    for reader in (bob, administrator):
        assert "Good mourning." in page_of(client_of(reader), address(recording, 1, part))
    act = "exported" if part.startswith("export") else "viewed"
    assert told(recording) == [(bob.email, act), (administrator.email, act)]


def test_an_administrator_sees_that_they_opened_it(
    administrator: User, recording: Recording, client_of: ClientOf
) -> None:
    open_for(administrator, recording)
    page = page_of(client_of(administrator), address(recording, 1))
    assert "You opened this as administrator" in page


@pytest.mark.parametrize("part", READS)
def test_anonymous_is_sent_to_log_in(recording: Recording, client_of: ClientOf, part: str) -> None:
    response = client_of(None).get(address(recording, 1, part), headers={"Accept": "text/html"})
    assert response.status_code == HTTPStatus.FOUND
    assert response["Location"].startswith("/accounts/login/?next=/recordings/")


def test_guests_get_the_current_version_alone(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    _, token = create_share_link(thing=recording, hours=24, made_by=alice)
    page = page_of(client_of(None), f"/r/{token}/")
    assert "Good morning." in page
    assert "version" not in page.lower()
    assert client_of(None).get(f"/r/{token}/versions/1/").status_code == 404


@pytest.mark.parametrize("part", READS)
@pytest.mark.parametrize("number", [0, 3, 2**31, 2**63, 10**30], ids=str)
def test_unknown_numbers_and_those_of_another_recording_are_not_found(
    alice: User, recording: Recording, client_of: ClientOf, part: str, number: int
) -> None:
    other = make_recording(alice, "Other", "Elsewhere.")
    write_transcript(other, "Elsewhere again.", number=3)
    assert client_of(alice).get(address(recording, number, part)).status_code == 404


def test_a_version_of_what_is_in_the_trash_is_not_found(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    Recording.objects.update(trashed_at=timezone.now())
    assert client_of(alice).get(address(recording, 1)).status_code == 404


# The list in the details --------------------------------------------------------------------------


def test_there_is_no_list_while_there_is_one_version(alice: User, client_of: ClientOf) -> None:
    recording = make_recording(alice, "Weekly", "Good morning.")
    assert "Versions" not in page_of(client_of(alice), f"/recordings/{recording.id}/")


def test_the_list_leads_to_each_version_and_marks_the_current_one(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    client = client_of(alice)
    for part in ("", "status/?shown="):
        page = page_of(client, f"/recordings/{recording.id}/{part}")
        assert page.count("<dt>Versions</dt>") == 1
        assert f'<a href="{address(recording, 1)}">Draft <span' in page
        assert address(recording, 2) not in page
        assert page.count(">Current<") == 1
        assert "more<svg" not in page
    read = page_of(client, address(recording, 1))
    assert '<strong aria-current="page">Draft <span' in read
    assert f'<a href="/recordings/{recording.id}/">Refined <span' in read


def test_a_long_list_shows_the_newest_and_the_current_one_and_opens(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    for number in range(3, 41):
        TranscriptRevision.objects.create(
            recording=recording, number=number, kind=RevisionKind.DRAFT, is_complete=True
        )
    client = client_of(alice)
    page = page_of(client, f"/recordings/{recording.id}/")
    seen, more = page.split('<details class="versions-more">')
    assert [number for number in range(1, 41) if address(recording, number) in seen] == [38, 39, 40]
    assert ">Current<" in seen
    assert ">36 more<" in more
    assert [number for number in range(1, 41) if address(recording, number) in more] == [
        1,
        *range(3, 38),
    ]
    # Where one of them is read, they are open.
    assert '<details class="versions-more" open>' in page_of(client, address(recording, 1))
